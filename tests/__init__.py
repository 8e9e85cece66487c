"""The tests of whenidle, a folder a floor."""
