    # How a host that is not joined to the domain fetches them.
    HostAccountConfig:
      PluginGUID: {guid}  # in braces
      PluginInput: {input}  # no passwords: it can be read in every pod
      PortableCcgVersion: "1"  # a text, not a number
