"""What a document is. Pure: no module here touches the outside."""
