import { isAddress } from '@purser/protocol'
import { bootServer, migrate, type RunningServer } from '@purser/server'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import type { DevChain } from './chains.ts'
import { type DataDir, openDataDir } from './data-dir.ts'
import { chainRecords, fundFaucet, fundSettler } from './dev-chains.ts'
import { dashboardUrlOf, devConfig } from './dev-config.ts'
import { type DevPayer, type DevRecord, readDevFile, writeDevFiles } from './dev-file.ts'
import type { DevOptions } from './dev-ground.ts'
import { type Ground, startGround } from './dev-ground.ts'
import { findFreePort, isPortTaken } from './free-port.ts'
import { ownersSignInLink, seed } from './seed.ts'
import { createStops, type Stops } from './stops.ts'

/** A running service with its database and chains. */
export interface Dev extends DevRecord {
  readonly server: RunningServer
  readonly dataDir: string
  readonly runningChains: readonly DevChain[]
  /** Stops the service, the chains and the database, in this order. Further calls wait for the same stop. */
  stop(): Promise<void>
}

/**
 * Starts the whole service on a data directory, and writes dev.json and dev.env there. Another start on the same directory has the
 * same organisation, key, wallet, payer and balances. When a part fails, what was started is stopped again.
 */
export async function startDev(options: DevOptions): Promise<Dev> {
  const stops = createStops()
  try {
    const dataDir = openDataDir(options.dataDir)
    stops.add(async () => dataDir.release())
    return await startOn(dataDir, options, stops)
  } catch (error) {
    await stops.run().catch(() => undefined)
    throw error
  }
}

async function startOn(dataDir: DataDir, options: DevOptions, stops: Stops): Promise<Dev> {
  const remembered = readDevFile(dataDir.devFile)
  const payer = remembered.payer ?? newPayer()
  const ground = await startGround(dataDir, options, { stops, payer: payer.address })
  options.signal?.throwIfAborted()
  await migrate({ url: ground.databaseUrl })
  options.signal?.throwIfAborted()
  const server = await bootOnFreePort(dataDir, options, ground)
  stops.add(() => server.stop())
  options.signal?.throwIfAborted()
  const { settlerAddress: settler } = server
  const baseUrl = `http://localhost:${server.port}`
  const [seeded] = await Promise.all([
    seed(server, baseUrl, remembered),
    ...ground.chains.map((chain) => (isAddress(settler) ? fundSettler(chain, settler) : undefined)),
    ...ground.chains.map(fundFaucet),
  ])
  const signInUrl = await ownersSignInLink(server, baseUrl)
  const dashboardUrl = dashboardUrlOf(baseUrl)
  const record: DevRecord = { baseUrl, dashboardUrl, signInUrl, ...seeded, payer, chains: chainRecords(ground.chains) }
  writeDevFiles(dataDir, record)
  options.signal?.throwIfAborted()
  return { ...record, server, dataDir: dataDir.path, runningChains: ground.chains, stop: stops.run }
}

const bootAttemptsMax = 5
/** The chains are on this machine: a deposit is seen at once, whatever the block time of the real network. */
const depositPollMsDefault = 250

/** Another process may take the port between the check and listening. Then the next port is tried. */
async function bootOnFreePort(dataDir: DataDir, options: DevOptions, ground: Ground): Promise<RunningServer> {
  const rpcUrls = Object.fromEntries(ground.chains.map(({ network, rpcUrl }) => [network, rpcUrl]))
  const { databaseUrl } = ground
  const { depositPollMsMax = depositPollMsDefault, probe } = options
  for (let attempt = 1; ; attempt += 1) {
    const port = await findFreePort(options.port)
    const { keyFile, filesDir } = dataDir
    const config = devConfig({ databaseUrl, keyFile, filesDir, port, rpcUrls, logLevel: options.logLevel })
    try {
      return await bootServer(config, { metricsOnMainPort: true, depositPollMsMax, probe })
    } catch (error) {
      if (!isPortTaken(error) || attempt === bootAttemptsMax) throw error
    }
  }
}

function newPayer(): DevPayer {
  const privateKey = generatePrivateKey()
  return { address: privateKeyToAddress(privateKey), privateKey }
}
