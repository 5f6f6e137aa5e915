import { isTempo, type Network, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import type { Chain, FeeSponsor } from '../../../../chain/port.ts'
import { gasLeft } from '../../../plans/index.ts'
import type { Ctx } from '../../ports.ts'
import { sponsoredGasMax, sponsoredMaxFeePerGasMax } from './transaction.ts'

const fundsMsMax = 5_000
const attodollarsPerUnit = 10n ** 12n
/** Balance that the sponsor needs for its most expensive transaction, in the fee token's smallest unit. */
const fundsMin = (sponsoredGasMax * sponsoredMaxFeePerGasMax) / attodollarsPerUnit

/**
 * Whether a challenge may offer now that the service pays the fee: sponsoring is on, the organization's budget of the day covers
 * the most expensive payment, and the sponsor has the funds. The offer reserves nothing; recording the payment does. If a node
 * does not answer, the result is false and payers pay their own fees.
 */
export async function sponsorsFees(ctx: Ctx, network: Network): Promise<boolean> {
  const { feeSponsor } = ctx
  const token = feeTokenOf(network)
  if (feeSponsor === undefined || token === undefined) return false
  if (!ctx.chains.configured.some(({ name }) => name === network.name)) return false
  if ((await gasLeft(ctx, network)) < ctx.gasPrices.costOf(network, sponsoredGasMax)) return false
  return hasFunds(ctx, ctx.chains.on(network), { sponsor: feeSponsor.signer, token })
}

/** Returns the token that the sponsor pays in: pathUSD, which every Tempo network has from its first block. */
export function feeTokenOf(network: Network): TokenInfo | undefined {
  return isTempo(network) ? (tokenBySymbol(network, 'pathUSD') ?? network.tokens[0]) : undefined
}

/**
 * Reads the sponsor's funds once for all challenges of some seconds, and caches a failure too: unpaid requests must not each wait
 * for a node.
 */
function hasFunds(
  ctx: Pick<Ctx, 'clock' | 'log' | 'chainMemory'>,
  chain: Chain,
  requested: { readonly sponsor: FeeSponsor; readonly token: TokenInfo },
): Promise<boolean> {
  const now = ctx.clock.now().getTime()
  const { sponsorFunds } = ctx.chainMemory
  const known = sponsorFunds.get(chain.network.name)
  if (known !== undefined && known.until > now) return known.enough
  const enough = askFunds(ctx, chain, requested)
  sponsorFunds.set(chain.network.name, { enough, until: now + fundsMsMax })
  return enough
}

async function askFunds(
  ctx: Pick<Ctx, 'log'>,
  chain: Chain,
  { sponsor, token }: { readonly sponsor: FeeSponsor; readonly token: TokenInfo },
): Promise<boolean> {
  try {
    const [balance = 0n] = await chain.balances([{ token: token.address, account: sponsor.address }])
    return balance >= fundsMin
  } catch (error) {
    ctx.log.warn(
      { err: error, network: chain.network.name },
      'the fee sponsor’s funds are not known; no fee is offered',
    )
    return false
  }
}
