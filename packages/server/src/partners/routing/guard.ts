import { type Address, type Hex, sameAddress, zeroAddress } from '@purser/protocol'
import type { PlannedCall } from './port.ts'
import { argumentsOf, encodeCall, selectorIn, selectorOf } from './words.ts'

const approve = selectorOf('approve(address,uint256)')

/** Call data that lets an account spend exactly so much of a token. */
export function encodeApprove(spender: Address, rawAmount: bigint): Hex {
  return encodeCall(approve, [spender, rawAmount])
}

/** What a call's own bytes say that it does; a part is left out where they do not say. */
export interface CallFacts {
  readonly spends?: { readonly token: Address; readonly rawAmount: bigint }
  readonly recipient?: Address
  readonly rawOutMin?: bigint
  readonly destinationChainId?: number
  /** Whether it runs a stranger's code where it arrives. */
  readonly callsOnArrival?: boolean
}

type Fact = Exclude<keyof CallFacts, 'callsOnArrival'>

export interface GuardRules {
  readonly chainId: number
  /** What is given; the zero address is the network's coin. */
  readonly token: Address
  readonly rawAmount: bigint
  readonly recipient: Address
  readonly destinationChainId: number
  readonly rawOutMin: bigint
  /** Contracts of the partner's that may be called on this network, and those that may be approved. */
  readonly targets: readonly Address[]
  readonly spenders: readonly Address[]
  /** Reads the partner's call; undefined for one that it does not know. */
  readonly read: (data: Hex) => CallFacts | undefined
  /** What the call's own bytes must show; the rest is the partner's word. */
  readonly mustShow: readonly Fact[]
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
  | 'calls-on-arrival'
  | 'amount-differs'
  | 'recipient-differs'
  | 'destination-differs'
  | 'minimum-too-low'

/**
 * Why calls that a partner wants signed are not: undefined when all is as it must be. At most one approval, of exactly the amount and to a
 * listed spender; then exactly one call, to a listed contract, that the adapter understands, and whose bytes pay the recipient, on the
 * right network, no less than was quoted. A partner that was taken over gets no more than the amount of one transfer, to the one who asked.
 */
export function whyNotSigned(calls: readonly PlannedCall[], rules: GuardRules): GuardReason | undefined {
  if (calls.some(({ chainId }) => chainId !== rules.chainId)) return 'wrong-chain'
  const isNative = sameAddress(rules.token, zeroAddress)
  const approvals = calls.filter(({ to }) => !isNative && sameAddress(to, rules.token))
  const sends = calls.filter((call) => !approvals.includes(call))
  const [send] = sends
  if (send === undefined) return 'no-call'
  if (approvals.length > 1 || sends.length > 1) return 'too-many-calls'
  for (const approval of approvals) {
    const fault = whyNotApproved(approval, rules)
    if (fault !== undefined) return fault
  }
  if (!isListed(rules.targets, send.to)) return 'target-not-listed'
  if (send.value !== (isNative ? rules.rawAmount : 0n)) return 'value-differs'
  return whyNotMeant(rules.read(send.data), rules)
}

function whyNotApproved({ data, value }: PlannedCall, rules: GuardRules): GuardReason | undefined {
  const words = argumentsOf(data)
  if (selectorIn(data) !== approve || data.length !== 138 || value !== 0n) return 'approval-not-exact'
  if (words.uint(1) !== rules.rawAmount) return 'approval-not-exact'
  const spender = words.address(0)
  return spender !== undefined && isListed(rules.spenders, spender) ? undefined : 'approval-to-stranger'
}

function whyNotMeant(facts: CallFacts | undefined, rules: GuardRules): GuardReason | undefined {
  if (facts === undefined || rules.mustShow.some((fact) => facts[fact] === undefined)) return 'call-not-understood'
  if (facts.callsOnArrival === true) return 'calls-on-arrival'
  const { spends, recipient, destinationChainId, rawOutMin } = facts
  if (spends !== undefined && (!sameAddress(spends.token, rules.token) || spends.rawAmount !== rules.rawAmount))
    return 'amount-differs'
  if (recipient !== undefined && !sameAddress(recipient, rules.recipient)) return 'recipient-differs'
  if (destinationChainId !== undefined && destinationChainId !== rules.destinationChainId) return 'destination-differs'
  return rawOutMin !== undefined && rawOutMin < rules.rawOutMin ? 'minimum-too-low' : undefined
}

function isListed(list: readonly Address[], address: Address): boolean {
  return list.some((listed) => sameAddress(listed, address))
}

/** The least that may arrive of what was quoted, rounded up against the partner. */
export function leastOf(rawOut: bigint, slippageBps: number): bigint {
  const kept = 10_000n - BigInt(slippageBps)
  return (rawOut * kept + 9_999n) / 10_000n
}
