import { type Address, bytesToHex, type Hex, keccak256, sameAddress, selectorOf, topics, utf8 } from '@purser/protocol'
import type { SimChain } from './chain.ts'
import type { Chance } from './chance.ts'
import {
  addCoin,
  type Circumstances,
  type Contracts,
  coinOf,
  pay,
  type Ran,
  type RawCall,
  type Run,
  revertData,
  reverted,
  type SimLog,
  type TokenState,
  tooPoor,
  wordOfAccount,
  wordOfNumber,
} from './token.ts'
import { accountIn, numberIn, wordOf } from './words.ts'

/** The contracts of the partner's sandbox: a pool that swaps the token and the coin, and a bridge. Their behavior is set by the partner's state. */
export const sandbox = { pool: `0x${'a1'.repeat(20)}`, bridge: `0x${'b2'.repeat(20)}` } as const

const zero = `0x${'0'.repeat(40)}` as const
const selectors = {
  transfer: selectorOf('transfer(address,uint256)'),
  approve: selectorOf('approve(address,uint256)'),
  allowance: selectorOf('allowance(address,address)'),
  quote: selectorOf('quote(address,address,uint256)'),
  swap: selectorOf('swap(bytes32,address,uint256,address,uint256,address)'),
  paid: selectorOf('paid(bytes32)'),
  deposit: selectorOf('deposit(bytes32,address,uint256,uint256,address,address,uint256)'),
  deposits: selectorOf('deposits(bytes32)'),
  fills: selectorOf('fills(bytes32)'),
} as const
const topicOf = (event: string): Hex => bytesToHex(keccak256(utf8(event)))
const events = {
  approval: topicOf('Approval(address,address,uint256)'),
  filled: topicOf('Filled(bytes32,address,uint256,address)'),
  refunded: topicOf('Refunded(bytes32)'),
} as const

/** Of coin for a unit of the token: 1 ETH is 2,000 dollars. */
const weiPerUnit = 500_000_000n
const isCoin = (token: string): boolean => sameAddress(token as Address, zero)
export const worthIn = (token: string, rawAmount: bigint): bigint =>
  isCoin(token) ? rawAmount / weiPerUnit : rawAmount * weiPerUnit

/** What the partner's contracts do in the next blocks. */
export interface Temper {
  /** `short`: the pool takes all and pays next to nothing. */
  pool: 'fair' | 'short' | 'reverts'
}

interface Ledger {
  readonly token: Address
  readonly temper: Temper
}

/** A deposit into the bridge, as its relayer sees it. */
export interface Bridged {
  readonly id: Hex
  readonly from: Address
  readonly token: string
  readonly rawAmount: bigint
  readonly tokenOut: string
  readonly recipient: Address
  readonly rawOutMin: bigint
}

/** What the token does beside authorizations, plain coin, and the contracts of the sandbox. */
export function marketOf(ledger: Ledger): Contracts {
  return { decode: (call) => decode(ledger, call), read: (state, target, data) => read(ledger, state, target, data) }
}

function decode({ token, temper }: Ledger, call: RawCall): Run | undefined {
  const { target, data, value, sender } = call
  const is = (contract: string, selector: string) =>
    target.toLowerCase() === contract.toLowerCase() && data.startsWith(selector)
  if (data === '0x') return (state) => payCoin(state, { from: sender, to: target, value })
  if (is(token, selectors.transfer))
    return (state) =>
      pay({ token }, state, { from: sender, to: accountIn(data, 0), value: numberIn(data, 1) }) ?? tooPoor
  if (is(token, selectors.approve))
    return ({ storage }) => {
      const [spender, amount] = [accountIn(data, 0), numberIn(data, 1)]
      storage.set(allowanceKey(sender, spender), amount)
      const log = {
        address: token,
        topics: [events.approval, wordOfAccount(sender), wordOfAccount(spender)],
        data: wordOfNumber(amount),
      }
      return done([log], 45_000n)
    }
  if (is(sandbox.pool, selectors.swap)) return (state) => swap({ token, temper }, state, call)
  if (is(sandbox.bridge, selectors.deposit)) return (state) => deposit(token, state, call)
  return undefined
}

function read({ token }: Ledger, { storage }: TokenState, target: string, data: Hex): Hex | undefined {
  const at = (contract: string, selector: string) =>
    target.toLowerCase() === contract.toLowerCase() && data.startsWith(selector)
  const word = (value: bigint): Hex => wordOfNumber(value) as Hex
  if (at(token, selectors.allowance))
    return word(storage.get(allowanceKey(accountIn(data, 0), accountIn(data, 1))) ?? 0n)
  if (at(sandbox.pool, selectors.quote)) return word(worthIn(accountIn(data, 0), numberIn(data, 2)))
  if (at(sandbox.pool, selectors.paid)) return word(storage.get(`paid ${wordOf(data, 0)}`) ?? 0n)
  if (at(sandbox.bridge, selectors.deposits)) return word(storage.get(`deposit ${wordOf(data, 0)}`) ?? 0n)
  if (at(sandbox.bridge, selectors.fills)) return read3(storage, wordOf(data, 0))
  return coinRead(storage, data)
}

/** Of Multicall3, and of the account without code that a simulation reads coin by. */
function coinRead(storage: TokenState['storage'], data: Hex): Hex | undefined {
  const ofMulticall = data.startsWith('0x4d2301cc') ? accountIn(data, 0) : undefined
  const ofReader =
    data.length === 66 && data.startsWith('0x000000000000000000000000') ? `0x${data.slice(26)}` : undefined
  const account = ofMulticall ?? ofReader
  return account === undefined ? undefined : (wordOfNumber(coinOf({ storage }, account)) as Hex)
}

function read3(storage: TokenState['storage'], id: string): Hex {
  const [token, rawAmount] = [storage.get(`fill token ${id}`) ?? 0n, storage.get(`fill ${id}`) ?? 0n]
  return `0x${[token, 0n, rawAmount].map((value) => wordOfNumber(value).slice(2)).join('')}`
}

const allowanceKey = (owner: string, spender: string): string => `allowance ${owner} ${spender}`.toLowerCase()
const done = (logs: readonly SimLog[], gas: bigint): Ran & { outcome: 'ok' } => ({ outcome: 'ok', logs, gas })

function payCoin(
  state: TokenState,
  { from, to, value }: { readonly from: string; readonly to: string; readonly value: bigint },
): Ran {
  if (coinOf(state, from) < value) return reverted('0x')
  addCoin(state, from, -value)
  addCoin(state, to, value)
  return done([], 1n)
}

/** Takes money of the caller as a contract: coin that comes with the call, or the token that it was allowed to take. */
function take(
  token: Address,
  state: TokenState,
  call: RawCall,
  asset: { readonly token: string; readonly rawAmount: bigint },
): Ran {
  const { sender, target, value } = call
  if (isCoin(asset.token))
    return value === asset.rawAmount
      ? payCoin(state, { from: sender, to: target, value })
      : reverted(revertData('value'))
  const key = allowanceKey(sender, target)
  const allowed = state.storage.get(key) ?? 0n
  if (allowed < asset.rawAmount) return reverted(revertData('ERC20: insufficient allowance'))
  const paid = pay({ token }, state, { from: sender, to: target, value: asset.rawAmount })
  if (paid === undefined) return tooPoor
  state.storage.set(key, allowed - asset.rawAmount)
  return paid
}

function swap({ token, temper }: Ledger, state: TokenState, call: RawCall): Ran {
  const { data } = call
  if (temper.pool === 'reverts') return reverted(revertData('no'))
  const taken = take(token, state, call, { token: accountIn(data, 1), rawAmount: numberIn(data, 2) })
  if (taken.outcome !== 'ok') return taken
  const [tokenOut, recipient] = [accountIn(data, 3), accountIn(data, 5)]
  const rawOut = temper.pool === 'short' ? 1n : worthIn(accountIn(data, 1), numberIn(data, 2))
  if (temper.pool === 'fair' && rawOut < numberIn(data, 4)) return reverted(revertData('too little'))
  const given = give({ token }, state, { asset: tokenOut, from: sandbox.pool, to: recipient, rawAmount: rawOut })
  state.storage.set(`paid ${wordOf(data, 0)}`, rawOut)
  return done([...taken.logs, ...given], 120_000n)
}

/** Paid from the partner's unlimited funds. */
function give(
  { token }: { readonly token: Address },
  state: TokenState,
  {
    asset,
    from,
    to,
    rawAmount,
  }: { readonly asset: string; readonly from: string; readonly to: string; readonly rawAmount: bigint },
): readonly SimLog[] {
  if (isCoin(asset)) {
    addCoin(state, to, rawAmount)
    return []
  }
  state.balances.set(to.toLowerCase(), (state.balances.get(to.toLowerCase()) ?? 0n) + rawAmount)
  return [
    {
      address: token,
      topics: [topics.transfer, wordOfAccount(from), wordOfAccount(to)],
      data: wordOfNumber(rawAmount),
    },
  ]
}

function deposit(token: Address, state: TokenState, call: RawCall): Ran {
  const { data } = call
  const taken = take(token, state, call, { token: accountIn(data, 1), rawAmount: numberIn(data, 2) })
  if (taken.outcome !== 'ok') return taken
  state.storage.set(`deposit ${wordOf(data, 0)}`, 1n)
  return done(taken.logs, 100_000n)
}

/** What came into the bridge up to a block and is neither paid out nor given back. */
export function openDeposits({ blocks, rules }: SimChain, upTo: number): readonly Bridged[] {
  const { storage } = blocks.at(-1)?.state ?? { storage: new Map<string, bigint>() }
  return blocks.slice(0, upTo + 1).flatMap(({ receipts }) =>
    [...receipts.values()].flatMap(({ status, transaction: { to, input, from } }): Bridged[] => {
      if (status !== '0x1' || to.toLowerCase() !== sandbox.bridge || !input.startsWith(selectors.deposit)) return []
      const id: Hex = `0x${wordOf(input, 0)}`
      if (storage.get(`deposit ${wordOf(input, 0)}`) !== 1n || rules.contracts === undefined) return []
      const [recipient, token, tokenOut] = [accountIn(input, 5), accountIn(input, 1), accountIn(input, 4)]
      return [
        {
          id,
          from: from as Address,
          token,
          rawAmount: numberIn(input, 2),
          tokenOut,
          recipient,
          rawOutMin: numberIn(input, 6),
        },
      ]
    }),
  )
}

/** The bridge's relayer refunds a deposit, less its fee. */
export function giveBack(chain: SimChain, { id, from, token, rawAmount }: Bridged, keptBps: bigint): void {
  const back = rawAmount - (rawAmount * keptBps) / 10_000n
  const run = (state: TokenState, _: Circumstances): Ran => {
    if (state.storage.get(`deposit ${id.slice(2)}`) !== 1n) return reverted('0x')
    state.storage.set(`deposit ${id.slice(2)}`, 2n)
    const logs = give(chain.rules, state, { asset: token, from: sandbox.bridge, to: from, rawAmount: back })
    return done([...logs, { address: sandbox.bridge, topics: [events.refunded, id], data: '0x' }], 60_000n)
  }
  chain.addStranger({ kind: 'contract', run }, { to: sandbox.bridge, input: '0x' })
}

/** The bridge's relayer pays out on the other side. */
export function payOut(far: SimChain, { id, tokenOut, recipient }: Bridged, rawOut: bigint): void {
  const run = (state: TokenState): Ran => {
    if ((state.storage.get(`fill ${id.slice(2)}`) ?? 0n) > 0n) return reverted('0x')
    state.storage.set(`fill ${id.slice(2)}`, rawOut)
    state.storage.set(`fill token ${id.slice(2)}`, BigInt(tokenOut))
    const logs = give(far.rules, state, { asset: tokenOut, from: sandbox.bridge, to: recipient, rawAmount: rawOut })
    return done([...logs, { address: sandbox.bridge, topics: [events.filled, id], data: '0x' }], 60_000n)
  }
  far.addStranger({ kind: 'contract', run }, { to: sandbox.bridge, input: '0x' })
}

export function isPaidOut(far: SimChain, { id }: Bridged): boolean {
  return (far.head.state.storage.get(`fill ${id.slice(2)}`) ?? 0n) > 0n
}

/** Sends native coin to an account. */
export function payCoinTo(chain: SimChain, chance: Chance, to: Address): void {
  const value = 10n ** 15n * BigInt(1 + chance.below(5))
  const run = (state: TokenState): Ran => {
    addCoin(state, to, value)
    return done([], 0n)
  }
  chain.addStranger({ kind: 'contract', run }, { to, input: '0x' })
}
