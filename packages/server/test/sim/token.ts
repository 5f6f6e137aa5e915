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
import { encodeBoundedCalls } from '../../src/features/relayer/forms/form.ts'
import { decodePermit, type Permit, permitKey, permitRefusal, permitText, readPermits } from './permits.ts'
import { accountIn, numberIn, selectorOf, signatureOf, wordOf } from './words.ts'

/** A simulated EIP-3009 token and Permit2: calls, state and logs, without cryptography. */

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
  | { readonly kind: 'contract'; readonly run: Run }
  | { readonly kind: 'unknown' }

/** The effect of a call to another contract on the state. */
export type Run = (state: TokenState, around: Circumstances) => Ran

export interface TokenState {
  readonly balances: Map<string, bigint>
  /** Authorizers and their nonces that are used or canceled. */
  readonly used: Set<string>
  /** Owners and their Permit2 nonces that are used or invalidated. */
  readonly permits: Set<string>
  /** Accounts whose code burns all gas that it is given. */
  readonly burners: Set<string>
  /** What other contracts keep, and the coin of accounts where it is counted. */
  readonly storage: Map<string, bigint>
}

export const emptyState = (): TokenState =>
  copyOf({ balances: new Map(), used: new Set(), permits: new Set(), burners: new Set(), storage: new Map() })

export const copyOf = ({ balances, used, permits, burners, storage }: TokenState): TokenState => ({
  balances: new Map(balances),
  used: new Set(used),
  permits: new Set(permits),
  burners: new Set(burners),
  storage: new Map(storage),
})

/** A call as a chain gets it. */
export interface RawCall {
  readonly target: string
  readonly data: Hex
  readonly value: bigint
  readonly sender: string
}

/** Contracts of a chain in addition to its token and Permit2. If there are any, accounts pay gas in native coin. */
export interface Contracts {
  /** Undefined for a call that is none of theirs. */
  decode(call: RawCall): Run | undefined
  read(state: TokenState, target: string, data: Hex): Hex | undefined
}

const coinKey = (account: string): string => `coin ${account.toLowerCase()}`

/** In wei. */
export const coinOf = ({ storage }: Pick<TokenState, 'storage'>, account: string): bigint =>
  storage.get(coinKey(account)) ?? 0n

export function addCoin({ storage }: Pick<TokenState, 'storage'>, account: string, wei: bigint): void {
  storage.set(coinKey(account), coinOf({ storage }, account) + wei)
}

export interface SimLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
}

/** The context shared by all calls on a chain. */
export interface Rules {
  readonly token: Address
  readonly settler: Address
  /** Signatures made with a key, by the signed terms: the first of their words. All others use a hash of the terms. */
  readonly signed: ReadonlyMap<string, string>
  /** Lower-case accounts whose signatures are always accepted: only the service can have made them. */
  readonly own: ReadonlySet<string>
  /** The token's constants, by the selector of the read. */
  readonly constants: ReadonlyMap<string, Hex>
  /** Who signed a raw transaction. */
  readonly senderOf: (raw: Hex) => string
  readonly contracts?: Contracts
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

/** Call data decoded as a call to the token, a Permit2 proxy or another contract. */
export function decodeCall({ contracts }: Pick<Rules, 'contracts'>, call: RawCall): TokenCall {
  const { target, data } = call
  const run = contracts?.decode(call)
  if (run !== undefined) return { kind: 'contract', run }
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
  readonly data: Hex
  /** Most gas that it may use. */
  readonly gas?: bigint
}

/** The calls of a transaction: one, or those that Multicall3 or creation code makes. */
export function innerCalls(to: string, data: Hex): readonly InnerCall[] {
  if (to === '0x') return boundedCalls(data.slice(encodeBoundedCalls([]).length))
  if (selectorOf(data) !== aggregate3) return [{ target: to, allowFailure: false, data }]
  const { args } = decodeFunctionData({ abi: multicall3Abi, data })
  const calls = args?.[0]
  if (!Array.isArray(calls)) throw new Error('no calls of Multicall3')
  return calls.flatMap((call) =>
    'allowFailure' in call ? [{ target: call.target, allowFailure: call.allowFailure, data: call.callData }] : [],
  )
}

/** The calls behind creation code: gas, target and length, then the call data. */
function boundedCalls(digits: string): readonly InnerCall[] {
  if (digits === '') return []
  const gas = BigInt(`0x${digits.slice(0, 6)}`)
  const end = 50 + Number.parseInt(digits.slice(46, 50), 16) * 2
  const call = {
    target: `0x${digits.slice(6, 46)}`,
    allowFailure: true,
    data: `0x${digits.slice(50, end)}` as Hex,
    gas,
  }
  return [call, ...boundedCalls(digits.slice(end))]
}

export const usedKey = (authorizer: string, nonce: string): string => `${authorizer} ${nonce}`.toLowerCase()

/** A key of the money of an authorization: payer, nonce, receiver and amount. */
export const moneyOf = ({ from, nonce, to, value }: Omit<Authorization, 'validBefore'>): string =>
  `eip3009 ${from} ${nonce} ${to} ${value}`.toLowerCase()

const errorAbi = [{ type: 'error', name: 'Error', inputs: [{ type: 'string', name: 'reason' }] }] as const
export const revertData = (reason: string): Hex =>
  encodeErrorResult({ abi: errorAbi, errorName: 'Error', args: [reason] })

/** The effect of a call: whose signed money moved, and how much. */
export interface Moved {
  readonly key: string
  readonly amount: bigint
}

export type Ran =
  | { readonly outcome: 'ok'; readonly logs: readonly SimLog[]; readonly gas: bigint; readonly moved?: Moved }
  | { readonly outcome: 'reverted'; readonly data: Hex; readonly gas: bigint }
  | { readonly outcome: 'burnt' }

export const wordOfAccount = (account: string): string => `0x${account.slice(2).toLowerCase().padStart(64, '0')}`
export const wordOfNumber = (value: bigint): string => `0x${value.toString(16).padStart(64, '0')}`

/** The time and the sender of a call. A burner can distinguish `isTrial` from a block. */
export interface Circumstances {
  readonly now: bigint
  readonly isTrial: boolean
  readonly sender: string
}

export const reverted = (data: Hex, gas = 30_000n): Ran => ({ outcome: 'reverted', data, gas })

/** Runs a call on a state, which it changes on success. */
export function runCall(rules: Rules, state: TokenState, call: TokenCall, around: Circumstances): Ran {
  if (call.kind === 'contract') return call.run(state, around)
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

export const tooPoor = reverted(revertData('ERC20: transfer amount exceeds balance'), 40_000n)

export function pay(
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

/** The logs of this money moving, which a lying node can also invent. */
export function logsOfMove(rules: Pick<Rules, 'token'>, authorization: Authorization): readonly SimLog[] {
  const balances = new Map([[authorization.from.toLowerCase(), authorization.value]])
  const state = { ...emptyState(), balances }
  const ran = transfer(rules, state, authorization)
  return ran.outcome === 'ok' ? ran.logs : []
}

/** Executes a read of the token, Permit2 or another contract; undefined if the call data is no read. */
export function readToken(
  { constants, contracts }: Rules,
  state: TokenState,
  { target, data }: { readonly target: string; readonly data: Hex },
): Hex | undefined {
  const other = contracts?.read(state, target, data)
  if (other !== undefined) return other
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
