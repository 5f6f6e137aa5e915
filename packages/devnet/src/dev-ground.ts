import type { Address } from '@purser/protocol'
import type { BootOptions } from '@purser/server'
import { createBridgeRelayer } from './bridge-relayer.ts'
import { type ChainOptions, type DevChain, startChain } from './chains.ts'
import type { DataDir } from './data-dir.ts'
import { devNetworks, fundPayer } from './dev-chains.ts'
import { startPostgres } from './postgres.ts'
import { fundSandbox } from './sandbox-market.ts'
import type { Stops } from './stops.ts'

export interface DevOptions {
  readonly dataDir: string
  /** If this port is taken, the next free one is used. 0 means any. */
  readonly port: number
  /** Use this PostgreSQL instead of a bundled one. */
  readonly databaseUrl?: string | undefined
  /** False: run no chain, so that only stub payments work. */
  readonly chains: boolean
  readonly logLevel?: string | undefined
  /** Longest interval between two looks for deposits on a chain. Default: 250 ms. */
  readonly depositPollMsMax?: number
  /** Intervals at which the service reads the database for work that is due. Default: as in production. */
  readonly probe?: BootOptions['probe']
  /** Whether the chains continue from their saved state, and save it. Default: true. False: they start empty. */
  readonly keepsChains?: boolean
  /** Interval at which the sandbox's relayer looks for deposits on its bridge. Default: 250 ms. */
  readonly relayerMs?: number
  /** Aborts the start: what was started is stopped and the reason is thrown. */
  readonly signal?: AbortSignal | undefined
}

/** The database and the chains of the service. */
export type Ground = { readonly databaseUrl: string; readonly chains: readonly DevChain[] }

/**
 * Starts database and chains at once; the database is stopped last. Waits for all of them, so that a failure leaves none
 * running.
 */
export async function startGround(
  dataDir: DataDir,
  options: DevOptions,
  { stops, payer }: { readonly stops: Stops; readonly payer: Address },
): Promise<Ground> {
  const database = startDatabase(dataDir, options)
  const networks = options.chains ? devNetworks : []
  const { keepsChains = true } = options
  const [databaseEnd, ...chainEnds] = await Promise.allSettled([
    database,
    ...networks.map((network) =>
      startFunded({ network, ...(keepsChains ? { stateFile: dataDir.chainState(network) } : {}) }, payer),
    ),
  ] as const)
  if (databaseEnd.status === 'fulfilled') stops.add(databaseEnd.value.stop)
  const chains = chainEnds.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
  stops.add(() => stopAll(chains))
  for (const end of [databaseEnd, ...chainEnds]) if (end.status === 'rejected') throw end.reason
  if (chains.length > 0) {
    // Pays out on the other chain what transfers of the test environment bridge.
    const relayer = createBridgeRelayer(chains)
    stops.add(relayer.stop)
    relayer.start(options.relayerMs)
  }
  return { databaseUrl: (await database).url, chains }
}

async function startDatabase(dataDir: DataDir, { databaseUrl }: DevOptions) {
  if (databaseUrl !== undefined) return { url: databaseUrl, stop: async () => undefined }
  return startPostgres({ dataDir: dataDir.postgres })
}

async function startFunded(options: ChainOptions, payer: Address): Promise<DevChain> {
  const chain = await startChain(options)
  try {
    await fundPayer(chain, payer)
    await fundSandbox(chain)
    return chain
  } catch (error) {
    await chain.stop().catch(() => undefined)
    throw error
  }
}

async function stopAll(chains: readonly DevChain[]): Promise<void> {
  const ends = await Promise.allSettled(chains.map((chain) => chain.stop()))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}
