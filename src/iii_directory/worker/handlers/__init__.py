"""Answer the functions: classes whose methods turn a payload into a reply."""
