"""What conversations are made of: words, tools, families of tools, and talk. All written for this purpose."""
