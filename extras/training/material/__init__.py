"""The material of conversations: words, tools, families of tools, and talk. All of it was written for this
purpose."""
