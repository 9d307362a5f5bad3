"""Page, ticket, text and files of a plan."""
