"""Commands that ask later what became of a result: is it active, does it hold, is what is new no slower."""
