"""The subcommands of `ansor`, one file each."""
