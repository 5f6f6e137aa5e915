import {
  type Address,
  encodeAuthorizationState,
  encodeBalanceOf,
  encodePermit2Allowance,
  encodeTransferWithAuthorization,
  type Hex,
  topics,
} from '@purser/protocol'
import { decodeFunctionData, encodeErrorResult, encodeFunctionResult, keccak256, multicall3Abi, toHex } from 'viem'
import { decodePermit, type Permit, permitKey, permitRefusal, permitText, readPermits } from './permits.ts'
import { accountIn, numberIn, selectorOf, signatureOf, wordOf } from './words.ts'

/** A simulated EIP-3009 token, with Permit2 beside it: calls, state and logs, without signatures' mathematics. */

export interface Authorization {
  readonly from: Address
  readonly to: Address
  readonly value: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
}

export type TokenCall =
  | { readonly kind: 'transfer'; readonly authorization: Authorization; readonly signature: string }
  | { readonly kind: 'permit'; readonly permit: Permit; readonly amount: bigint; readonly signature: string }
  | { readonly kind: 'cancel'; readonly from: Address; readonly nonce: Hex }
  | { readonly kind: 'give-up'; readonly owner: Address; readonly nonce: bigint }
  | { readonly kind: 'pay'; readonly from: Address; readonly to: Address; readonly value: bigint }
  | { readonly kind: 'take-on-code'; readonly from: Address }
  | { readonly kind: 'unknown' }

export interface TokenState {
  readonly balances: Map<string, bigint>
  /** Authorizers and nonces that are used or canceled. */
  readonly used: Set<string>
  /** Owners and nonces of Permit2 that are used or given up. */
  readonly permits: Set<string>
  /** Accounts whose code burns all gas that it is given. */
  readonly burners: Set<string>
}

export const copyOf = ({ balances, used, permits, burners }: TokenState): TokenState => ({
  balances: new Map(balances),
  used: new Set(used),
  permits: new Set(permits),
  burners: new Set(burners),
})

export interface SimLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
}

/** What is the same for every call on a chain. */
export interface Rules {
  readonly token: Address
  readonly settler: Address
  /** Signatures that were made with a key, by what was signed: the first of their words. For all others a hash of it stands. */
  readonly signed: ReadonlyMap<string, string>
  /** Accounts in lower case whose signatures are taken as they come: only the service can have made them. */
  readonly own: ReadonlySet<string>
  /** What the token says of itself, by the selector of the read. */
  readonly constants: ReadonlyMap<string, Hex>
}

const dummy: Authorization & { readonly validAfter: bigint } = {
  from: `0x${'0'.repeat(40)}`,
  to: `0x${'0'.repeat(40)}`,
  value: 0n,
  validAfter: 0n,
  validBefore: 0n,
  nonce: `0x${'0'.repeat(64)}`,
}
const byVrs = selectorOf(
  encodeTransferWithAuthorization(dummy, { kind: 'ecdsa', v: 27, r: dummy.nonce, s: dummy.nonce }),
)
const byBytes = selectorOf(encodeTransferWithAuthorization(dummy, { kind: 'bytes', signature: '0x' }))
const balanceOf = selectorOf(encodeBalanceOf(dummy.from))
const authorizationState = selectorOf(encodeAuthorizationState(dummy.from, dummy.nonce))
const allowance = selectorOf(encodePermit2Allowance(dummy.from))
const canceledTopic = keccak256(toHex('AuthorizationCanceled(address,bytes32)'))
const aggregate3 = '0x82ad56cb'

export function authorizationText({ from, to, value, validBefore, nonce }: Authorization): string {
  return [from, to, value, validBefore, nonce].join(' ').toLowerCase()
}

/** What call data asks of the token, or of a proxy of Permit2. */
export function decodeCall(target: string, data: string): TokenCall {
  const permit = decodePermit(target, data)
  if (permit !== undefined) return permit
  const selector = selectorOf(data)
  if (selector !== byVrs && selector !== byBytes) return { kind: 'unknown' }
  const authorization: Authorization = {
    from: accountIn(data, 0),
    to: accountIn(data, 1),
    value: numberIn(data, 2),
    validBefore: numberIn(data, 4),
    nonce: `0x${wordOf(data, 5)}`,
  }
  return { kind: 'transfer', authorization, signature: `0x${wordOf(data, selector === byBytes ? 8 : 7)}` }
}

export interface InnerCall {
  readonly target: string
  readonly allowFailure: boolean
  readonly data: string
}

/** The calls of a transaction: one, or those that Multicall3 makes. */
export function innerCalls(to: string, data: Hex): readonly InnerCall[] {
  if (selectorOf(data) !== aggregate3) return [{ target: to, allowFailure: false, data }]
  const { args } = decodeFunctionData({ abi: multicall3Abi, data })
  const calls = args?.[0]
  if (!Array.isArray(calls)) throw new Error('no calls of Multicall3')
  return calls.flatMap((call) =>
    'allowFailure' in call ? [{ target: call.target, allowFailure: call.allowFailure, data: call.callData }] : [],
  )
}

export const usedKey = (authorizer: string, nonce: string): string => `${authorizer} ${nonce}`.toLowerCase()

/** Names the money of an authorization: whom it leaves, under which nonce, whom it reaches and how much. */
export const moneyOf = ({ from, nonce, to, value }: Omit<Authorization, 'validBefore'>): string =>
  `eip3009 ${from} ${nonce} ${to} ${value}`.toLowerCase()

const errorAbi = [{ type: 'error', name: 'Error', inputs: [{ type: 'string', name: 'reason' }] }] as const
const revertData = (reason: string): Hex => encodeErrorResult({ abi: errorAbi, errorName: 'Error', args: [reason] })

/** What a call carried out: whose signed money moved, and how much. */
export interface Moved {
  readonly key: string
  readonly amount: bigint
}

export type Ran =
  | { readonly outcome: 'ok'; readonly logs: readonly SimLog[]; readonly gas: bigint; readonly moved?: Moved }
  | { readonly outcome: 'reverted'; readonly data: Hex; readonly gas: bigint }
  | { readonly outcome: 'burnt' }

export const wordOfAccount = (account: string): string => `0x${account.slice(2).toLowerCase().padStart(64, '0')}`
const wordOfNumber = (value: bigint): string => `0x${value.toString(16).padStart(64, '0')}`

/** When and by whom a call is made. `isTrial` is what a burner can tell from a block. */
export interface Circumstances {
  readonly now: bigint
  readonly isTrial: boolean
  readonly sender: string
}

const reverted = (data: Hex, gas = 30_000n): Ran => ({ outcome: 'reverted', data, gas })

/** Runs a call on a state, which it changes where it succeeds. */
export function runCall(rules: Rules, state: TokenState, call: TokenCall, around: Circumstances): Ran {
  if (call.kind === 'unknown') return reverted('0x', 1_000n)
  if (call.kind === 'take-on-code') {
    state.burners.add(call.from.toLowerCase())
    return { outcome: 'ok', logs: [], gas: 30_000n }
  }
  if (call.kind === 'give-up') {
    state.permits.add(permitKey(call.owner, call.nonce))
    return { outcome: 'ok', logs: [], gas: 30_000n }
  }
  if (call.kind === 'cancel') return cancel(rules, state, call)
  if (call.kind === 'pay') return pay(rules, state, call) ?? tooPoor
  const owner = call.kind === 'transfer' ? call.authorization.from : call.permit.owner
  const refusal =
    call.kind === 'transfer' ? refusalOf(rules, state, call, around) : permitRefusal(rules, state, call, around)
  if (refusal !== undefined) return reverted(refusal)
  if (state.burners.has(owner.toLowerCase()) && !around.isTrial) return { outcome: 'burnt' }
  return call.kind === 'transfer' ? transfer(rules, state, call.authorization) : spend(rules, state, call)
}

const tooPoor = reverted(revertData('ERC20: transfer amount exceeds balance'), 40_000n)

function pay(
  { token }: Pick<Rules, 'token'>,
  { balances }: TokenState,
  { from, to, value }: { readonly from: string; readonly to: string; readonly value: bigint },
): (Ran & { outcome: 'ok' }) | undefined {
  const balance = balances.get(from.toLowerCase()) ?? 0n
  if (balance < value) return undefined
  balances.set(from.toLowerCase(), balance - value)
  balances.set(to.toLowerCase(), (balances.get(to.toLowerCase()) ?? 0n) + value)
  const log = {
    address: token,
    topics: [topics.transfer, wordOfAccount(from), wordOfAccount(to)],
    data: wordOfNumber(value),
  }
  return { outcome: 'ok', logs: [log], gas: 40_000n }
}

function transfer(rules: Pick<Rules, 'token'>, state: TokenState, authorization: Authorization): Ran {
  const { from, nonce, value } = authorization
  const paid = pay(rules, state, authorization)
  if (paid === undefined) return tooPoor
  state.used.add(usedKey(from, nonce))
  const used = {
    address: rules.token,
    topics: [topics.authorizationUsed, wordOfAccount(from), nonce.toLowerCase()],
    data: '0x',
  }
  const moved = { key: moneyOf(authorization), amount: value }
  return { outcome: 'ok', logs: [used, ...paid.logs], gas: 60_000n, moved }
}

function spend(
  rules: Rules,
  state: TokenState,
  { permit, amount }: { readonly permit: Permit; readonly amount: bigint },
): Ran {
  const paid = pay(rules, state, { from: permit.owner, to: permit.witness.to, value: amount })
  if (paid === undefined) return tooPoor
  state.permits.add(permitKey(permit.owner, permit.nonce))
  return { ...paid, gas: 90_000n, moved: { key: permitText(permit), amount } }
}

function cancel(
  { token }: Rules,
  state: TokenState,
  { from, nonce }: { readonly from: Address; readonly nonce: Hex },
): Ran {
  const key = usedKey(from, nonce)
  if (state.used.has(key)) return reverted(revertData('FiatTokenV2: authorization is used or canceled'))
  state.used.add(key)
  return {
    outcome: 'ok',
    logs: [{ address: token, topics: [canceledTopic, wordOfAccount(from), nonce], data: '0x' }],
    gas: 40_000n,
  }
}

function refusalOf(
  { signed, own }: Rules,
  state: TokenState,
  { authorization, signature }: Extract<TokenCall, { kind: 'transfer' }>,
  { now }: Circumstances,
): Hex | undefined {
  if (now >= authorization.validBefore) return revertData('FiatTokenV2: authorization is expired')
  if (state.used.has(usedKey(authorization.from, authorization.nonce)))
    return revertData('FiatTokenV2: authorization is used or canceled')
  if (own.has(authorization.from.toLowerCase())) return undefined
  const text = authorizationText(authorization)
  return signature === (signed.get(text) ?? signatureOf(text))
    ? undefined
    : revertData('FiatTokenV2: invalid signature')
}

/** The logs that moving this money writes, as a lying node also knows. */
export function logsOfMove(rules: Pick<Rules, 'token'>, authorization: Authorization): readonly SimLog[] {
  const balances = new Map([[authorization.from.toLowerCase(), authorization.value]])
  const state = { balances, used: new Set<string>(), permits: new Set<string>(), burners: new Set<string>() }
  const ran = transfer(rules, state, authorization)
  return ran.outcome === 'ok' ? ran.logs : []
}

/** A read of the token or of Permit2; undefined for what is none. */
export function readToken({ constants }: Rules, state: TokenState, data: string): Hex | undefined {
  const selector = selectorOf(data)
  const account = accountIn(data, 0).toLowerCase()
  if (selector === balanceOf) return wordOfNumber(state.balances.get(account) ?? 0n) as Hex
  if (selector === allowance) return wordOfNumber(2n ** 256n - 1n) as Hex
  if (selector === authorizationState)
    return wordOfNumber(state.used.has(usedKey(account, `0x${wordOf(data, 1)}`)) ? 1n : 0n) as Hex
  return constants.get(selector) ?? readPermits(state, data)
}

export function encodeResults(results: readonly { readonly success: boolean; readonly returnData: Hex }[]): Hex {
  return encodeFunctionResult({ abi: multicall3Abi, functionName: 'aggregate3', result: [...results] })
}
