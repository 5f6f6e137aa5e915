import { type Address, type Hex, sameAddress, selectorOf, zeroAddress } from '@purser/protocol'
import { address, decodeCall, tuple, uint } from './abi.ts'
import type { ExpectedChange, PlannedCall, Quoted, RouteRequest } from './port.ts'
import { encodeCall, selectorIn } from './words.ts'

const approve = selectorOf('approve(address,uint256)')
const approveArguments = tuple({ spender: address, rawAmount: uint(256) })

/** Call data that lets an account spend exactly so much of a token. */
export function encodeApprove(spender: Address, rawAmount: bigint): Hex {
  return encodeCall(approve, [spender, rawAmount])
}

/** What a call does, by its own bytes: nothing in it is the partner's word. */
export interface CallMeaning {
  readonly spends: { readonly token: Address; readonly rawAmount: bigint }
  readonly arrives: {
    readonly chainId: number
    readonly token: Address
    readonly recipient: Address
    /** The partner's contracts refuse less, or give the money back. */
    readonly rawMin: bigint
  }
  /** To whom the money goes back where the other side cannot be paid; undefined where it cannot come back. */
  readonly refundTo?: Address | undefined
  /** Balances that it changes, beside that of its sender. */
  readonly changes: readonly ExpectedChange[]
}

export interface GuardRules {
  /** Contracts of the partner's that may be called on this network, and approved. */
  readonly targets: readonly Address[]
  /** Reads the partner's call exactly; undefined for one that it does not know. */
  readonly read: (data: Hex) => CallMeaning | undefined
}

export type GuardReason =
  | 'no-call'
  | 'too-many-calls'
  | 'wrong-chain'
  | 'target-not-listed'
  | 'approval-not-exact'
  | 'approval-to-stranger'
  | 'value-differs'
  | 'call-not-understood'
  | 'amount-differs'
  | 'recipient-differs'
  | 'refund-differs'
  | 'destination-differs'
  | 'token-differs'
  | 'minimum-too-low'

/**
 * Why calls that a partner wants signed are not: undefined when all is as it must be. At most one approval, of exactly the amount and to a
 * listed contract; then exactly one call, to a listed contract, that the adapter reads whole, and whose bytes spend what was requested and
 * pay the recipient, on the right network, in the right token, no less than was quoted. Whoever takes over a partner gets nothing by it.
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
  const approval = decodeCall(data, approve, approveArguments)
  if (approval === undefined || value !== 0n || approval.rawAmount !== rawAmount) return 'approval-not-exact'
  return isListed(targets, approval.spender) ? undefined : 'approval-to-stranger'
}

/** What the partner's call does, or why it is not the one that was requested. */
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
 * The balances that a call must change where it is tried before it is signed: undefined where its bytes are not those of the request. Of a
 * bridge exactly the amount leaves the sender; a swap on one chain may give back what the market did not take.
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

/** A refusal in the words of the port: what nobody here can read is no route, and what is read and differs is unsafe. */
export function refusedFor(fault: GuardReason, calls: readonly PlannedCall[]): Quoted {
  if (fault !== 'call-not-understood') return { ok: false, reason: 'unsafe', words: fault }
  const data = calls.at(-1)?.data ?? '0x'
  const notUnderstood = `${selectorIn(data) ?? 'no selector'}, ${(data.length - 2) / 2} bytes`
  return {
    ok: false,
    reason: 'no-route',
    words: 'The partner’s way is one that is not understood here.',
    notUnderstood,
  }
}

function isListed(list: readonly Address[], one: Address): boolean {
  return list.some((listed) => sameAddress(listed, one))
}

/** The least that may arrive of what was quoted, rounded up against the partner. */
export function leastOf(rawOut: bigint, slippageBps: number): bigint {
  const kept = 10_000n - BigInt(slippageBps)
  return (rawOut * kept + 9_999n) / 10_000n
}
