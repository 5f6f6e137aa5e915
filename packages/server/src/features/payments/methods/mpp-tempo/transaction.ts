import {
  type Address,
  decodeTip20Transfer,
  isMemoBound,
  isTempo,
  type MppProblem,
  type Network,
  sameAddress,
  type TokenInfo,
  tokenBySymbol,
  uint256Max,
} from '@purser/protocol'
import type { Chain, FeeSponsor, TempoTransaction } from '../../../../chain/port.ts'
import { gasLeft } from '../../../plans/index.ts'
import type { Ctx } from '../../ports.ts'

/** The payment that a transaction must make, and its challenge. */
export interface Owed {
  readonly chainId: number
  readonly token: Address
  readonly recipient: Address
  /** In the token's smallest unit. */
  readonly amount: bigint
  readonly realm: string
  readonly challengeId: string
  /** The account that the credential names as its source, if any. */
  readonly payer: Address | undefined
  /** Whether the challenge offered to pay the fee. */
  readonly feePayer: boolean
  /** Most attodollars that a sponsored transaction may offer on top of the base fee, which the sponsor pays. */
  readonly sponsoredTipMax: bigint
}

export interface MppRefusal {
  readonly problem: MppProblem
  readonly message: string
}

/** Least time before a transaction's end that a node accepts. */
const leadSecondsMin = 3n
/** TIP-1009 allows 30 seconds of chain time; the rest allows for clock differences. */
const expiringSecondsMax = 60n
/** Most seconds that the outcome of any other transaction may stay open. */
const validSecondsMax = 900n
/** Most gas of a sponsored transaction; a first transfer to a new account uses about 310,000. */
const sponsoredGasMax = 1_000_000n
/** Most that a sponsored transaction may pay for gas, in attodollars: with the gas limit above, 0.10 USD. */
const sponsoredMaxFeePerGasMax = 100_000_000_000n

/**
 * Returns why a transaction is not the requested payment, as far as this is known without the chain; undefined if it is. It must
 * be exactly one call, `transferWithMemo` on the challenge's token with the exact amount and a memo made for this challenge: the
 * memo prevents a transfer from paying for two things.
 * Source: draft-tempo-charge-00, "Transaction verification"; mppx 0.11 tempo/server/Charge.
 */
export function whyNotTaken(transaction: TempoTransaction, owed: Owed, nowSeconds: bigint): MppRefusal | undefined {
  return whyNotPaying(transaction, owed) ?? whyNotInTime(transaction, nowSeconds) ?? whyNotAffordable(transaction, owed)
}

function whyNotPaying({ chainId, calls, sender }: TempoTransaction, owed: Owed): MppRefusal | undefined {
  if (chainId !== owed.chainId) return failed('the transaction is for another chain')
  if (owed.payer !== undefined && !sameAddress(sender, owed.payer)) return failed('the sender is not the source')
  const [call, more] = calls
  if (call === undefined || more !== undefined) return failed('the transaction must make exactly one call')
  if (call.to === undefined || !sameAddress(call.to, owed.token) || call.value !== 0n)
    return failed("the call must go to the challenge's token, without value")
  const transfer = decodeTip20Transfer(call.data)
  if (transfer === undefined) return failed('the call must be a transferWithMemo')
  return (
    whyNotTransfer({ ...transfer, memo: transfer.memo }, owed) ??
    (transfer.amount === owed.amount ? undefined : failed('the amount is not the requested one'))
  )
}

/** Returns why one transfer does not pay the requested amount; a larger transfer does. */
export function whyNotTransfer(
  transfer: { readonly to: Address; readonly amount: bigint; readonly memo: `0x${string}` | undefined },
  owed: Pick<Owed, 'recipient' | 'amount' | 'realm' | 'challengeId'>,
): MppRefusal | undefined {
  if (transfer.memo === undefined || !isMemoBound(transfer.memo, owed))
    return failed('the memo is not bound to this challenge')
  if (!sameAddress(transfer.to, owed.recipient)) return failed('the money goes to another account')
  return transfer.amount < owed.amount
    ? { problem: 'payment-insufficient', message: 'the amount is too low' }
    : undefined
}

function whyNotInTime({ validBefore, validAfter, nonceKey }: TempoTransaction, now: bigint): MppRefusal | undefined {
  if (validBefore === undefined) return failed('the transaction must end some time: it has no validBefore')
  if (validBefore <= now + leadSecondsMin) return failed('the transaction has expired, or is about to')
  if (validBefore > now + (nonceKey === uint256Max ? expiringSecondsMax : validSecondsMax))
    return failed('the transaction is valid for too long')
  return validAfter !== undefined && validAfter >= now ? failed('the transaction is not valid yet') : undefined
}

function whyNotAffordable(
  { feePaidBy, gasLimit, maxFeePerGas, maxPriorityFeePerGas }: TempoTransaction,
  owed: Owed,
): MppRefusal | undefined {
  if (feePaidBy === 'sender') return undefined
  if (!owed.feePayer) return failed('the challenge does not offer to pay the fee')
  if (gasLimit > sponsoredGasMax) return failed(`the gas limit is above ${sponsoredGasMax}`)
  if (maxPriorityFeePerGas > owed.sponsoredTipMax)
    return failed(`maxPriorityFeePerGas is above ${owed.sponsoredTipMax}`)
  return maxFeePerGas > sponsoredMaxFeePerGasMax
    ? failed(`maxFeePerGas is above ${sponsoredMaxFeePerGasMax}`)
    : undefined
}

function failed(message: string): MppRefusal {
  return { problem: 'verification-failed', message }
}

const fundsMsMax = 5_000
const attodollarsPerUnit = 10n ** 12n
/** Balance that the sponsor needs for its most expensive transaction, in the fee token's smallest unit. */
const fundsMin = (sponsoredGasMax * sponsoredMaxFeePerGasMax) / attodollarsPerUnit

/**
 * Whether a challenge may offer now that the service pays the fee: sponsoring is on, the organisation's budget of the day covers
 * the most expensive payment, and the sponsor has the funds. The offer reserves nothing; recording the payment does. If a node
 * does not respond, the result is false and payers pay their own fees.
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
