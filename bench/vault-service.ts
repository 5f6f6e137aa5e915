import path from 'node:path'
import { type Child, startChild } from './children.ts'
import type { Closing } from './closing.ts'
import type { Watched } from './cpu.ts'
import { postRequest, runLoad } from './load.ts'
import { parseObject } from './parse.ts'
import type { Home } from './sides.ts'

/** Vault benchmarks need no chain. */
const noChain = 'http://127.0.0.1:9'
const makingMsMax = 60_000

export interface VaultService {
  readonly child: Child
  readonly port: number
  /** The headers of every request of the benchmark's customer. */
  readonly headers: Readonly<Record<string, string>>
  readonly watched: readonly Watched[]
}

/** Starts a process of our service at home; the first there founds the organisation, which has the largest plan. */
export async function startVaultService(home: Home, closing: Closing): Promise<VaultService> {
  const child = await startChild('purser-service.ts', {
    BENCH_RPC_URL: noChain,
    BENCH_DATABASE_URL: home.postgres.url,
    BENCH_KEY_FILE: path.join(home.directory, 'key-encryption-key'),
    BENCH_SEED: home.apiKey === undefined ? 'yes' : 'no',
    // Without a chain there is nothing to follow, of which the service would warn again and again.
    BENCH_LOG_LEVEL: 'error',
  })
  closing.add(() => child.stop())
  home.apiKey ??= child.ready('apiKey')
  return {
    child,
    port: Number(child.ready('port')),
    headers: { authorization: `Bearer ${home.apiKey}` },
    watched: [
      { name: 'service', pid: child.pid },
      { name: 'PostgreSQL', pid: home.postgres.pid, tree: true },
    ],
  }
}

export function createVaultRequest({ headers }: VaultService): Buffer {
  return postRequest('/vaults', JSON.stringify({ ttl: '24h' }), headers)
}

/** Makes vaults to measure in; throws where one cannot be made. */
export async function makeVaults(service: VaultService, count: number): Promise<string[]> {
  const requests = Array.from({ length: count }, () => createVaultRequest(service))
  const { responses } = await runLoad({ port: service.port, connections: 8, requests, msMax: makingMsMax })
  if (responses.length < count) throw new Error(`only ${responses.length} of ${count} vaults were made in time`)
  return responses.map(({ status, body }) => {
    const { id } = parseObject(body)
    if (typeof id !== 'string') throw new Error(`no vault: ${status} ${body}`)
    return id
  })
}
