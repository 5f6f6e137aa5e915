import { type Address, type Network, tokenBySymbol } from '@purser/protocol'
import type { Gauge } from 'prom-client'
import type { Chains } from '../chain/port.ts'
import type { Deps } from '../platform/ctx.ts'

/** Each process reads the balances at most this often, however often Prometheus reads. */
const readAgainMs = 60_000

interface SettlerDeps extends Pick<Deps, 'metrics' | 'clock' | 'log'> {
  readonly chains: Chains
  readonly settlerAddress: Address
}

/**
 * Sets the gauge of the settler's balance for fees on each network, as one node reports it. Reading the metrics waits for no node: it returns the
 * balances of the last reading, and begins another if that is a minute old. A network whose nodes do not respond has no value.
 */
export function showSettler(deps: SettlerDeps): void {
  let readAtMs = Number.NEGATIVE_INFINITY
  const help = 'What the settler has to pay fees with, in whole units of the asset.'
  deps.metrics.gauge('purser_settler_balance', help, ['network', 'asset'], (gauge) => {
    const nowMs = deps.clock.now().getTime()
    if (nowMs - readAtMs < readAgainMs) return
    readAtMs = nowMs
    for (const network of deps.chains.configured) void showBalance(deps, gauge, network)
  })
}

async function showBalance(
  { chains, settlerAddress, log }: SettlerDeps,
  gauge: Gauge,
  network: Network,
): Promise<void> {
  const token = network.nativeCoin === null ? tokenBySymbol(network, 'pathUSD') : undefined
  const asset = network.nativeCoin ?? token
  if (asset === undefined) return
  const labels = { network: network.name, asset: asset.symbol }
  const tokens = token === undefined ? [] : [token.address]
  try {
    const [holding] = await chains.on(network).holdings([{ account: settlerAddress, tokens }])
    const raw = token === undefined ? holding?.native : holding?.tokens[0]
    // A gauge is a float: it shows whether money is left, and no amount is computed from it.
    if (raw !== undefined) gauge.set(labels, Number(raw) / 10 ** asset.decimals)
  } catch (error) {
    gauge.remove(labels)
    log.debug({ err: error, network: network.name }, 'the balance of the settler cannot be read')
  }
}
