import { createServer } from 'node:net'
import { isRecord } from './rpc.ts'

const portsTriedMax = 100
const portMax = 65_535

/**
 * Returns the port itself when it is free, else the next free one above it; 0 means any. Another process may take it a
 * moment later.
 */
export async function findFreePort(preferred: number): Promise<number> {
  for (let port = preferred; port > 0 && port <= Math.min(preferred + portsTriedMax, portMax); port += 1) {
    if (await isFree(port)) return port
  }
  return listenBriefly(0, '127.0.0.1')
}

export function isPortTaken(error: unknown): boolean {
  return isRecord(error) && error.code === 'EADDRINUSE'
}

/** Whether the port is free in both families: `localhost` may resolve to either, and must reach this service. */
async function isFree(port: number): Promise<boolean> {
  try {
    await listenBriefly(port, '127.0.0.1')
    await listenBriefly(port, '::1').catch((error) => {
      if (isPortTaken(error)) throw error
    })
    return true
  } catch (error) {
    if (isPortTaken(error)) return false
    if (isRecord(error) && error.code === 'EACCES') throw new Error(`Port ${port} may not be opened by this user.`)
    throw error
  }
}

function listenBriefly(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, host, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : port))
    })
  })
}
