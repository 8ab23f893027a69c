"""An engine for one machine that speaks the iii wire protocol."""
