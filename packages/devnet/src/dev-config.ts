import { networks } from '@purser/protocol'
import { type Config, explorerVariable, faultsAsText, readConfig, rpcVariable } from '@purser/server'
import { faucetKey } from './dev-chains.ts'
import { sandboxBridgeAddress, sandboxPoolAddress, walletFactoryAddress } from './predeploys.ts'

/** The service serves its dashboard itself. */
export function dashboardUrlOf(baseUrl: string): string {
  return `${baseUrl}/dashboard`
}

export interface DevSettings {
  readonly databaseUrl: string
  readonly keyFile: string
  /** The directory in which the contents of files are stored. */
  readonly filesDir: string
  readonly port: number
  /** One JSON-RPC address per local chain. */
  readonly rpcUrls: Readonly<Record<string, string>>
  readonly logLevel?: string | undefined
}

/**
 * The configuration of the local service: production's defaults, on this machine only. It is built from `settings`
 * alone, so that no environment variable can point it at a chain with real money.
 */
export function devConfig(settings: DevSettings): Config {
  const baseUrl = `http://localhost:${settings.port}`
  // No public explorer knows a chain of this machine, whatever network it is named after.
  const explorerVariables = Object.keys(settings.rpcUrls).map((network) => [explorerVariable(network), 'none'])
  const rpcVariables = Object.entries(settings.rpcUrls).map(([network, url]) => [rpcVariable(network), url])
  const config = readConfig(
    {
      DATABASE_URL: settings.databaseUrl,
      DATABASE_DURABILITY: 'single',
      KEY_ENCRYPTION_KEY_FILE: settings.keyFile,
      FILES_DIR: settings.filesDir,
      HOST: '127.0.0.1',
      PORT: String(settings.port),
      BASE_URL: baseUrl,
      DASHBOARD_URL: dashboardUrlOf(baseUrl),
      EIP6492_FACTORIES: walletFactoryAddress,
      SANDBOX_POOL_ADDRESS: sandboxPoolAddress,
      SANDBOX_BRIDGE_ADDRESS: sandboxBridgeAddress,
      SPONSOR_TEMPO_FEES: 'true',
      SANDBOX_SCREENING: 'true',
      TEST_FAUCET_KEY: faucetKey,
      TEST_CLOCK: 'true',
      WEBHOOKS_ALLOW_PRIVATE: 'true',
      // No proxy routes requests to it, so Ctrl-C need not wait for one to stop.
      STOP_DELAY_MS: '0',
      LOG_LEVEL: settings.logLevel ?? 'warn',
      ...Object.fromEntries([...rpcVariables, ...explorerVariables]),
    },
    [],
    networks.map(({ name }) => name),
  )
  if ('faults' in config) throw new Error(faultsAsText(config.faults))
  return { ...config, metricsPort: undefined, createKeyEncryptionKey: true }
}
