module.exports = {
  ADDRCONFIG: 32, ALL: 16, V4MAPPED: 8, NODATA: "ENODATA", FORMERR: "EFORMERR", SERVFAIL: "ESERVFAIL", NOTFOUND: "ENOTFOUND", NOTIMP: "ENOTIMP", REFUSED: "EREFUSED", TIMEOUT: "ETIMEOUT", CONNREFUSED: "ECONNREFUSED", CANCELLED: "ECANCELLED",
  getServers: () => [], setDefaultResultOrder() {}, getDefaultResultOrder: () => "verbatim",
  get promises() { return require("dns/promises"); },
};
