"""What the subcommands of `ansor` do, one file each."""
