/**
 * Loaded into the official command line before anything else (`node --import`). LOCAL_NODES is a JSON object of host
 * names and local addresses. Requests to such a host go to its address, and no other request leaves this machine.
 */
const direct = globalThis.fetch
const nodes: Readonly<Record<string, string>> = JSON.parse(process.env.LOCAL_NODES ?? '{}')

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init)
  const { hostname } = new URL(request.url)
  if (hostname === '127.0.0.1') return direct(request)
  const node = nodes[hostname]
  if (node === undefined) throw new Error(`${hostname} is outside of this test`)
  return direct(new Request(node, request))
}
