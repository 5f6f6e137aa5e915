import { type Address, type Hex, sameAddress, zeroAddress } from '@purser/protocol'
import { approveSelector } from '../../platform/contract-calls.ts'
import { address, decodeCall, tuple, uint } from './abi.ts'
import type { ExpectedChange, PlannedCall, Quoted, RouteRequest } from './port.ts'
import { selectorIn } from './words.ts'

const approveArguments = tuple({ spender: address, rawAmount: uint(256) })

/** The effect of a call, decoded only from its bytes, never from the partner's statements. */
export interface CallMeaning {
  readonly spends: { readonly token: Address; readonly rawAmount: bigint }
  readonly arrives: {
    readonly chainId: number
    readonly token: Address
    readonly recipient: Address
    /** The partner's contracts revert or refund when less would arrive. */
    readonly rawMin: bigint
  }
  /** Recipient of a refund when the destination cannot be paid; undefined when there is no refund. */
  readonly refundTo?: Address | undefined
  /** Balance changes other than the sender's. */
  readonly changes: readonly ExpectedChange[]
}

export interface GuardRules {
  /** The partner's contracts that may be called and approved on this network. */
  readonly targets: readonly Address[]
  /** Decodes the partner's call completely; undefined for an unknown call. */
  readonly read: (data: Hex) => CallMeaning | undefined
}

export type GuardReason =
  | 'no-call'
  | 'too-many-calls'
  | 'wrong-chain'
  | 'target-not-listed'
  | 'approval-not-exact'
  | 'approval-to-other-spender'
  | 'value-differs'
  | 'call-not-understood'
  | 'amount-differs'
  | 'recipient-differs'
  | 'refund-differs'
  | 'destination-differs'
  | 'token-differs'
  | 'minimum-too-low'

/**
 * Returns why a partner's calls must not be signed; undefined when they are safe. Allowed are at most one approval, of exactly the amount and to a
 * listed contract, and exactly one call, to a listed contract, which the adapter decodes completely. The call must spend the requested amount and pay
 * the recipient on the right network, in the right token, at least the quoted minimum. A compromised partner therefore cannot steal funds.
 */
export function whyNotSigned(
  calls: readonly PlannedCall[],
  request: RouteRequest,
  rules: GuardRules & { readonly rawOutMin: bigint },
): GuardReason | undefined {
  const { network, token } = request.from
  if (calls.some(({ chainId }) => chainId !== network.chainId)) return 'wrong-chain'
  const isNative = sameAddress(token.address, zeroAddress)
  const approvals = calls.filter(({ to }) => !isNative && sameAddress(to, token.address))
  const sends = calls.filter((call) => !approvals.includes(call))
  const [send] = sends
  if (send === undefined) return 'no-call'
  if (approvals.length > 1 || sends.length > 1) return 'too-many-calls'
  for (const approval of approvals) {
    const fault = whyNotApproved(approval, request, rules)
    if (fault !== undefined) return fault
  }
  const read = readCall(send, request, rules)
  if (typeof read === 'string') return read
  return read.arrives.rawMin < rules.rawOutMin ? 'minimum-too-low' : undefined
}

function whyNotApproved(
  { data, value }: PlannedCall,
  { rawAmount }: RouteRequest,
  { targets }: GuardRules,
): GuardReason | undefined {
  const approval = decodeCall(data, approveSelector, approveArguments)
  if (approval === undefined || value !== 0n || approval.rawAmount !== rawAmount) return 'approval-not-exact'
  return isListed(targets, approval.spender) ? undefined : 'approval-to-other-spender'
}

/** The effect of the partner's call, or why it differs from the request. */
function readCall(
  { to, value, data }: PlannedCall,
  { from, to: end, rawAmount, fromAddress, toAddress }: RouteRequest,
  { targets, read }: GuardRules,
): CallMeaning | GuardReason {
  if (!isListed(targets, to)) return 'target-not-listed'
  if (value !== (sameAddress(from.token.address, zeroAddress) ? rawAmount : 0n)) return 'value-differs'
  const meaning = read(data)
  if (meaning === undefined) return 'call-not-understood'
  const { spends, arrives, refundTo } = meaning
  if (!sameAddress(spends.token, from.token.address) || spends.rawAmount !== rawAmount) return 'amount-differs'
  if (!sameAddress(arrives.recipient, toAddress)) return 'recipient-differs'
  if (refundTo !== undefined && !sameAddress(refundTo, fromAddress)) return 'refund-differs'
  if (arrives.chainId !== end.network.chainId) return 'destination-differs'
  return sameAddress(arrives.token, end.token.address) ? meaning : 'token-differs'
}

/**
 * The balance changes that the trial of a call must show before it is signed; undefined when the call does not match the request. A bridge takes
 * exactly the amount from the sender; a swap may return an unused part.
 */
export function changesOf(
  call: PlannedCall,
  request: RouteRequest,
  rules: GuardRules,
): readonly ExpectedChange[] | undefined {
  const meaning = readCall(call, request, rules)
  if (typeof meaning === 'string') return undefined
  const { from, to, rawAmount, fromAddress: account } = request
  const most = from.network.chainId === to.network.chainId ? 0n : -rawAmount
  return [{ token: from.token.address, account, least: -rawAmount, most }, ...meaning.changes]
}

/** Maps a guard failure to a refusal: an unknown call is `no-route`, and a decoded call that differs is `unsafe`. */
export function refusedFor(fault: GuardReason, calls: readonly PlannedCall[]): Quoted {
  if (fault !== 'call-not-understood') return { ok: false, reason: 'unsafe', words: fault }
  const data = calls.at(-1)?.data ?? '0x'
  const undecodedCall = `${selectorIn(data) ?? 'no selector'}, ${(data.length - 2) / 2} bytes`
  return {
    ok: false,
    reason: 'no-route',
    words: 'The partner’s route uses a call that is not supported.',
    undecodedCall,
  }
}

function isListed(list: readonly Address[], one: Address): boolean {
  return list.some((listed) => sameAddress(listed, one))
}

/** The minimum amount after slippage, rounded up. */
export function leastOf(rawOut: bigint, slippageBps: number): bigint {
  const kept = 10_000n - BigInt(slippageBps)
  return (rawOut * kept + 9_999n) / 10_000n
}
