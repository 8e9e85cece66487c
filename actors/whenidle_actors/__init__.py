"""The runtime: agents, supervision, hosts, stores. Users import it through `whenidle`."""
