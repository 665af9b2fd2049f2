package scenarios

import (
	"context"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type shelf struct {
	Shelf string `json:"shelf"`
}

type stock struct {
	Books int `json:"books"`
}

// serveShelf is the tool server of the package's example, made with the SDK alone.
func serveShelf() {
	server := mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "count", Description: "Count the books on one shelf."},
		func(context.Context, *mcp.CallToolRequest, shelf) (*mcp.CallToolResult, stock, error) {
			return nil, stock{Books: 12}, nil
		})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}
