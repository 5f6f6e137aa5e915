import { createHash } from 'node:crypto'
import {
  type Address,
  encodeAuthorizationState,
  encodeBalanceOf,
  encodeTransferWithAuthorization,
  type Hex,
  topics,
} from '@purser/protocol'
import { decodeFunctionData, encodeErrorResult, encodeFunctionResult, keccak256, multicall3Abi, toHex } from 'viem'

/** A simulated EIP-3009 token: its calls, its state and its logs, without signatures' mathematics. */

export interface Authorization {
  readonly from: Address
  readonly to: Address
  readonly value: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
}

export type TokenCall =
  | {
      readonly kind: 'transfer'
      readonly authorization: Authorization
      readonly signature: Hex
      readonly isContract: boolean
    }
  | { readonly kind: 'cancel'; readonly from: Address; readonly nonce: Hex }
  | { readonly kind: 'spend'; readonly from: Address; readonly value: bigint }
  | { readonly kind: 'take-on-code'; readonly from: Address }
  | { readonly kind: 'unknown' }

export interface TokenState {
  readonly balances: Map<string, bigint>
  /** Authorizers and nonces that are used or canceled. */
  readonly used: Set<string>
  /** Accounts whose code burns all gas that it is given. */
  readonly burners: Set<string>
}

export interface SimLog {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
}

const dummy: Authorization & { readonly validAfter: bigint } = {
  from: `0x${'0'.repeat(40)}`,
  to: `0x${'0'.repeat(40)}`,
  value: 0n,
  validAfter: 0n,
  validBefore: 0n,
  nonce: `0x${'0'.repeat(64)}`,
}
const selectorOf = (data: string): string => data.slice(0, 10)
const byVrs = selectorOf(
  encodeTransferWithAuthorization(dummy, { kind: 'ecdsa', v: 27, r: dummy.nonce, s: dummy.nonce }),
)
const byBytes = selectorOf(encodeTransferWithAuthorization(dummy, { kind: 'bytes', signature: '0x' }))
const balanceOf = selectorOf(encodeBalanceOf(dummy.from))
const authorizationState = selectorOf(encodeAuthorizationState(dummy.from, dummy.nonce))
const canceledTopic = keccak256(toHex('AuthorizationCanceled(address,bytes32)'))
const aggregate3 = '0x82ad56cb'

/** What stands for a signature: the token takes it where it is of exactly these fields. */
export function signatureOf({ from, to, value, validBefore, nonce }: Authorization): Hex {
  const text = [from, to, value, validBefore, nonce].join(' ').toLowerCase()
  return `0x${createHash('sha256').update(text).digest('hex')}`
}

const wordOf = (data: string, index: number): string => data.slice(10 + index * 64, 74 + index * 64)
const accountOf = (word: string): Address => `0x${word.slice(24)}`

/** What call data of the token asks for. */
export function decodeCall(data: string): TokenCall {
  const selector = selectorOf(data)
  if (selector !== byVrs && selector !== byBytes) return { kind: 'unknown' }
  const authorization: Authorization = {
    from: accountOf(wordOf(data, 0)),
    to: accountOf(wordOf(data, 1)),
    value: BigInt(`0x${wordOf(data, 2)}`),
    validBefore: BigInt(`0x${wordOf(data, 4)}`),
    nonce: `0x${wordOf(data, 5)}`,
  }
  const isContract = selector === byBytes
  return { kind: 'transfer', authorization, isContract, signature: `0x${wordOf(data, isContract ? 8 : 7)}` }
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

const errorAbi = [{ type: 'error', name: 'Error', inputs: [{ type: 'string', name: 'reason' }] }] as const
export const revertData = (reason: string): Hex =>
  encodeErrorResult({ abi: errorAbi, errorName: 'Error', args: [reason] })

export type Ran =
  | { readonly outcome: 'ok'; readonly logs: readonly SimLog[]; readonly gas: bigint }
  | { readonly outcome: 'reverted'; readonly reason: string; readonly gas: bigint }
  | { readonly outcome: 'burnt' }

const wordOfAccount = (account: string): string => `0x${account.slice(2).toLowerCase().padStart(64, '0')}`
const wordOfNumber = (value: bigint): string => `0x${value.toString(16).padStart(64, '0')}`

/** Runs a call on a state, which it changes where it succeeds. `isTrial` is what a burner can tell from a block. */
export function runCall(
  token: Address,
  state: TokenState,
  call: TokenCall,
  { now, isTrial }: { readonly now: bigint; readonly isTrial: boolean },
): Ran {
  if (call.kind === 'unknown') return { outcome: 'reverted', reason: '', gas: 1_000n }
  if (call.kind === 'take-on-code') {
    state.burners.add(call.from.toLowerCase())
    return { outcome: 'ok', logs: [], gas: 30_000n }
  }
  if (call.kind === 'cancel') {
    const key = usedKey(call.from, call.nonce)
    if (state.used.has(key))
      return { outcome: 'reverted', reason: 'FiatTokenV2: authorization is used or canceled', gas: 30_000n }
    state.used.add(key)
    const log = { address: token, topics: [canceledTopic, wordOfAccount(call.from), call.nonce], data: '0x' }
    return { outcome: 'ok', logs: [log], gas: 40_000n }
  }
  const from = call.kind === 'spend' ? call.from : call.authorization.from
  const value = call.kind === 'spend' ? call.value : call.authorization.value
  if (call.kind === 'transfer') {
    const refusal = refusalOf(state, call, now)
    if (refusal !== undefined) return { outcome: 'reverted', reason: refusal, gas: 30_000n }
    if (state.burners.has(from.toLowerCase()) && !isTrial) return { outcome: 'burnt' }
  }
  const balance = state.balances.get(from.toLowerCase()) ?? 0n
  if (balance < value) return { outcome: 'reverted', reason: 'ERC20: transfer amount exceeds balance', gas: 40_000n }
  const to = call.kind === 'spend' ? `0x${'e'.repeat(40)}` : call.authorization.to
  state.balances.set(from.toLowerCase(), balance - value)
  state.balances.set(to.toLowerCase(), (state.balances.get(to.toLowerCase()) ?? 0n) + value)
  const moved = {
    address: token,
    topics: [topics.transfer, wordOfAccount(from), wordOfAccount(to)],
    data: wordOfNumber(value),
  }
  if (call.kind === 'spend') return { outcome: 'ok', logs: [moved], gas: 40_000n }
  const { nonce } = call.authorization
  state.used.add(usedKey(from, nonce))
  const used = {
    address: token,
    topics: [topics.authorizationUsed, wordOfAccount(from), nonce.toLowerCase()],
    data: '0x',
  }
  return { outcome: 'ok', logs: [used, moved], gas: 60_000n }
}

function refusalOf(state: TokenState, call: Extract<TokenCall, { kind: 'transfer' }>, now: bigint): string | undefined {
  const { authorization, signature } = call
  if (now >= authorization.validBefore) return 'FiatTokenV2: authorization is expired'
  if (state.used.has(usedKey(authorization.from, authorization.nonce)))
    return 'FiatTokenV2: authorization is used or canceled'
  return signature === signatureOf(authorization) ? undefined : 'FiatTokenV2: invalid signature'
}

/** The logs that moving this money writes, as a lying node also knows. */
export function logsOfMove(token: Address, authorization: Authorization): readonly SimLog[] {
  const state = {
    balances: new Map([[authorization.from.toLowerCase(), authorization.value]]),
    used: new Set<string>(),
    burners: new Set<string>(),
  }
  const call = { kind: 'transfer', authorization, signature: signatureOf(authorization), isContract: false } as const
  const ran = runCall(token, state, call, { now: 0n, isTrial: true })
  return ran.outcome === 'ok' ? ran.logs : []
}

/** A read of the token; undefined for what is none. */
export function readToken(state: TokenState, data: string): Hex | undefined {
  const selector = selectorOf(data)
  const account = accountOf(wordOf(data, 0)).toLowerCase()
  if (selector === balanceOf) return `0x${(state.balances.get(account) ?? 0n).toString(16).padStart(64, '0')}`
  if (selector !== authorizationState) return undefined
  return `0x${(state.used.has(usedKey(account, `0x${wordOf(data, 1)}`)) ? '1' : '0').padStart(64, '0')}`
}

export function encodeResults(results: readonly { readonly success: boolean; readonly returnData: Hex }[]): Hex {
  return encodeFunctionResult({ abi: multicall3Abi, functionName: 'aggregate3', result: [...results] })
}
