package main

import "github.com/spf13/cobra"

func (a *app) acceptCommand() *cobra.Command { return &cobra.Command{Use: "accept"} }
