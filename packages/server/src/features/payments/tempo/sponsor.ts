import { type Network, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import type { Chain, FeeSponsor } from '../../../chain/port.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import { gasLeft } from '../../plans/index.ts'
import { isTempo } from './network.ts'
import { sponsoredGasMax, sponsoredMaxFeePerGasMax } from './transaction.ts'

/** The account that pays fees for payers on Tempo. */
export interface Sponsorship {
  readonly signer: FeeSponsor
}

const fundsMsMax = 5_000
const attodollarsPerUnit = 10n ** 12n
/** What the sponsor must hold for the dearest transaction that it signs, in the fee token's smallest unit. */
const fundsMin = (sponsoredGasMax * sponsoredMaxFeePerGasMax) / attodollarsPerUnit

/**
 * Whether a challenge may promise now that the service pays the fee: sponsoring is on, the organisation's budget of the day lasts for the dearest
 * payment, and the sponsor has the money. A promise is not a reservation; recording the payment is. A node that does not answer
 * makes it no, and the payer pays his fee himself.
 */
export async function sponsorsFees(ctx: Ctx, network: Network): Promise<boolean> {
  const { feeSponsor } = ctx
  const token = feeTokenOf(network)
  if (feeSponsor === undefined || token === undefined) return false
  if (!ctx.chains.configured.some(({ name }) => name === network.name)) return false
  if ((await gasLeft(ctx, network)) < ctx.gasPrices.costOf(network, sponsoredGasMax)) return false
  return hasFunds(ctx, ctx.chains.on(network), { sponsor: feeSponsor.signer, token })
}

/** The token that the sponsor pays in: pathUSD, which every Tempo network has from its first block. */
export function feeTokenOf(network: Network): TokenInfo | undefined {
  return isTempo(network) ? (tokenBySymbol(network, 'pathUSD') ?? network.tokens[0]) : undefined
}

const remembered = new WeakMap<Chain, { readonly enough: Promise<boolean>; readonly until: number }>()

/** Asked once for all challenges of some seconds, also of a node that fails: unpaid requests must not each wait for it. */
function hasFunds(
  ctx: Pick<Ctx, 'clock' | 'log'>,
  chain: Chain,
  asked: { readonly sponsor: FeeSponsor; readonly token: TokenInfo },
): Promise<boolean> {
  const now = ctx.clock.now().getTime()
  const known = remembered.get(chain)
  if (known !== undefined && known.until > now) return known.enough
  const enough = askFunds(ctx, chain, asked)
  remembered.set(chain, { enough, until: now + fundsMsMax })
  return enough
}

async function askFunds(
  ctx: Pick<Ctx, 'log'>,
  chain: Chain,
  { sponsor, token }: { readonly sponsor: FeeSponsor; readonly token: TokenInfo },
): Promise<boolean> {
  try {
    const [held = 0n] = await chain.balances([{ token: token.address, account: sponsor.address }])
    return held >= fundsMin
  } catch (error) {
    ctx.log.warn(
      { err: error, network: chain.network.name },
      'the fee sponsor’s funds are not known; no fee is offered',
    )
    return false
  }
}
