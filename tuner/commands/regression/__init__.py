"""Commands that ask later what became of a result: is it in force, does it hold, is what is new no slower."""
