"""Ways to sign in to a provider: one file each, all of them an `Auth`."""
