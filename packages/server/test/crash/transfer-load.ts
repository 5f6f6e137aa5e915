import { setTimeout as delay } from 'node:timers/promises'
import { type DevChain, fundNative, fundToken } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { codeOf, request } from '../world.ts'

export interface Wallet {
  readonly id: string
  readonly address: Address
  readonly sends: readonly ('USDC' | 'ETH')[]
}

/** One transfer as its caller sees it. Its recipient is used once, so the recipient's balance shows this transfer alone. */
export interface TransferAttempt {
  readonly from: Wallet
  readonly to: Address
  readonly token: 'USDC' | 'ETH'
  readonly key: string | undefined
  answer?: { readonly status: number; readonly id: string; readonly reported: string }
}

export interface Caller {
  readonly apiKey: string
  where(index: number): Promise<string>
  /** Services of an earlier version may answer. */
  readonly isOlder?: boolean
}

export const rawOf = { USDC: 250_000n, ETH: 1_000_000_000_000n } as const
const amountOf = { USDC: '0.25', ETH: '0.000001' } as const
const retryMs = 40

/**
 * Half of them are masters with coin and token, half children. Every second child has no coin and sends the token alone.
 */
export async function someWallets(caller: Caller, chain: DevChain, masters: number): Promise<readonly Wallet[]> {
  const wallets: Wallet[] = []
  for (let index = 0; index < masters; index++) {
    const path = '/wallet-infra/master-wallets'
    const master = await made(caller, path, { chain: 'base', supportedTokens: ['USDC'] })
    const child = await made(caller, `${path}/${master.id}/child-addresses`, {})
    await fundNative(chain, master.address, 10n ** 18n)
    if (index % 2 === 0) await fundNative(chain, child.address, 10n ** 17n)
    for (const { address } of [master, child]) await fundToken(chain, 'USDC', address, 100_000_000n)
    const both = ['ETH', 'USDC', 'USDC'] as const
    wallets.push({ ...master, sends: both }, { ...child, sends: index % 2 === 0 ? both : ['USDC'] })
  }
  return wallets
}

async function made({ apiKey, where }: Caller, path: string, body: unknown): Promise<Omit<Wallet, 'sends'>> {
  const response = await request(await where(0), { key: apiKey, method: 'POST', path, body })
  if (response.status >= 300) throw new Error(`${path}: ${JSON.stringify(response.body)}`)
  return { id: String(response.body.id), address: response.body.address as Address }
}

/** Transfers to make, in turn from each wallet: most of the token, two of three with an Idempotency-Key. */
export function someTransfers(wallets: readonly Wallet[], count: number): TransferAttempt[] {
  return Array.from({ length: count }, (_, index) => {
    const from = wallets[index % wallets.length]
    if (from === undefined) throw new Error('no wallets')
    const round = Math.floor(index / wallets.length)
    const key = index % 3 === 0 ? undefined : `transfer-${index}`
    return {
      from,
      to: privateKeyToAddress(generatePrivateKey()),
      token: from.sends[round % from.sends.length] ?? 'USDC',
      key,
    }
  })
}

export interface TransferLoad {
  readonly counts: Readonly<Record<string, number>>
  /** The number of transfers that are sent no more: answered, lost without a key, or locked by a request that died. */
  done(): number
  readonly ended: Promise<unknown>
}

/**
 * Callers that send the transfers one after the other. One with a key retries until it is answered or its key is locked
 * by a request that died. One without accepts any answer, but retries after a 503, which means that nothing was stored.
 */
export function startTransfers(caller: Caller, wishes: readonly TransferAttempt[], callers: number): TransferLoad {
  const counts: Record<string, number> = {}
  const waiting = [...wishes.entries()].reverse()
  let done = 0
  const count = (what: string): void => {
    counts[what] = (counts[what] ?? 0) + 1
  }
  const ask = async (wish: TransferAttempt, turn: number): Promise<'done' | 'again'> => {
    const response = await post(caller, wish, turn).catch(() => undefined)
    count(response === undefined ? 'lost' : `${response.status}${response.status < 300 ? '' : ` ${codeOf(response)}`}`)
    if (response === undefined) return wish.key === undefined ? 'done' : 'again'
    // Its first request died half-way, and its key stays locked for longer than a test waits.
    if (codeOf(response) === 'idempotency-in-progress') return 'done'
    if (response.status === 503) return 'again'
    wish.answer = {
      status: response.status,
      id: String(response.body.id),
      reported: codeOf(response) || String(response.body.status),
    }
    return 'done'
  }
  const work = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      for (let turn = next[0]; (await ask(next[1], turn)) === 'again'; turn++) await delay(retryMs)
      done++
    }
  }
  return {
    counts,
    done: () => done,
    ended: Promise.all(Array.from({ length: callers }, work)),
  }
}

/** Sends one transfer with its key. */
export async function post(
  { apiKey, where, isOlder }: Caller,
  { from, to, token, key }: TransferAttempt,
  turn: number,
) {
  const body = { fromWalletId: from.id, fromToken: token, toToken: token, toChain: 'base', toAddress: to }
  const headers = key === undefined ? {} : { 'idempotency-key': key }
  const sent = { ...body, amount: amountOf[token] }
  return request(await where(turn), {
    key: apiKey,
    method: 'POST',
    path: '/wallet-infra/transfer',
    body: sent,
    headers,
    ...(isOlder && { isOlder }),
  })
}
