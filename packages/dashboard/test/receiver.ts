import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A receiver of webhooks on this machine, with its host and port. */
export async function openReceiver(response: RequestListener) {
  const server = createServer(response)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { host: `127.0.0.1:${port}`, close: () => void server.close() }
}
