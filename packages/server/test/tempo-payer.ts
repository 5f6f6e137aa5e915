import { type DevChain, fundFees, fundToken } from '@purser/devnet'
import {
  attributionMemo,
  decodeMppJson,
  encodeTransferWithMemo,
  formatMppCredential,
  formatPayerSource,
  type MppChallenge,
  parseChallenges,
  parseTempoChargeRequest,
} from '@purser/protocol'
import { type Address, createPublicClient, type Hex, http } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { Transaction } from 'viem/tempo'
import { z } from 'zod'
import type { Answer, Org, World } from './world.ts'

export const pathUsd: Address = '0x20C0000000000000000000000000000000000000'
const expiringNonce = 2n ** 256n - 1n

/** How a transaction differs from the one that the challenge requests. */
export interface Changes {
  readonly chainId?: number
  readonly token?: Address
  readonly to?: Address
  readonly amount?: bigint
  readonly memo?: Hex
  /** Whole call data, instead of the transfer. */
  readonly data?: Hex
  readonly value?: bigint
  readonly calls?: number
  /** Further challenges that the same transaction pays. */
  readonly also?: readonly MppChallenge[]
  readonly validSeconds?: number
  readonly validAfterSeconds?: number
  readonly nonceKey?: bigint
  readonly nonce?: number
  readonly gas?: bigint
  readonly maxFeePerGas?: bigint
  readonly maxPriorityFeePerGas?: bigint
  readonly feeToken?: Address
  readonly sponsored?: boolean
}

export interface TempoPayer {
  readonly account: PrivateKeyAccount
  /** A signed transaction for the challenge, in the payer's form. */
  sign(challenge: MppChallenge, changes?: Changes): Promise<Hex>
  /** The value of the Authorization header: pull, with a signed transaction. */
  pull(challenge: MppChallenge, changes?: Changes): Promise<string>
  /** Broadcasts the transaction and returns its hash. */
  broadcast(challenge: MppChallenge, changes?: Changes): Promise<Hex>
}

/** A new payer with 1,000 pathUSD. */
export async function aTempoPayer(chain: DevChain, options: { readonly funded?: boolean } = {}): Promise<TempoPayer> {
  const account = privateKeyToAccount(generatePrivateKey())
  if (options.funded !== false) await fundFees(chain, account.address)
  const sign = (challenge: MppChallenge, changes: Changes = {}) => signFor(account, challenge, changes)
  return {
    account,
    sign,
    async pull(challenge, changes = {}) {
      const payload = { type: 'transaction', signature: await sign(challenge, changes) }
      return formatMppCredential({ challenge, payload, source: sourceOf(account, chain.chainId) })
    },
    async broadcast(challenge, changes = {}) {
      const serializedTransaction = await sign(challenge, { ...changes, sponsored: false })
      const client = createPublicClient({ transport: http(chain.rpcUrl) })
      const hash = await client.sendRawTransaction({ serializedTransaction })
      await client.waitForTransactionReceipt({ hash, pollingInterval: 100, timeout: 60_000 })
      return hash
    },
  }
}

/** The value of the Authorization header: push, with a hash. */
export function push(challenge: MppChallenge, hash: Hex, payer?: Pick<TempoPayer, 'account'>): string {
  const payload = { type: 'hash', hash }
  return formatMppCredential({
    challenge,
    payload,
    ...(payer === undefined ? {} : { source: sourceOf(payer.account) }),
  })
}

/** The first offer of a challenge response. */
export function offerOf(answer: Answer): MppChallenge {
  const [offer] = parseChallenges(String(answer.body.mpp))
  if (offer === undefined) throw new Error(`no offer: ${JSON.stringify(answer.body)}`)
  return offer
}

/** The memo that binds a transfer to the challenge. */
export function memoFor(challenge: MppChallenge): Hex {
  return attributionMemo({ realm: challenge.realm, challengeId: challenge.id })
}

function sourceOf(account: Pick<PrivateKeyAccount, 'address'>, chainId = 42_431): string {
  return formatPayerSource({ chainId, address: account.address })
}

/** The call that pays a challenge. */
function transferFor(challenge: MppChallenge): { readonly to: Address; readonly data: Hex } {
  const requested = parseTempoChargeRequest(decodeMppJson(challenge.request) ?? {})
  if (requested === undefined) throw new Error('not a tempo charge')
  const { currency, recipient, amount } = requested
  return { to: currency, data: encodeTransferWithMemo(recipient, BigInt(amount), memoFor(challenge)) }
}

async function signFor(account: PrivateKeyAccount, challenge: MppChallenge, changes: Changes): Promise<Hex> {
  const requested = parseTempoChargeRequest(decodeMppJson(challenge.request) ?? {})
  if (requested === undefined) throw new Error('not a tempo charge')
  const { to = requested.recipient, amount = BigInt(requested.amount) } = changes
  const memo = changes.memo ?? memoFor(challenge)
  const call = {
    to: changes.token ?? requested.currency,
    data: changes.data ?? encodeTransferWithMemo(to, amount, memo),
    ...(changes.value === undefined ? {} : { value: changes.value }),
  }
  const now = Math.floor(Date.now() / 1_000)
  const sponsored = changes.sponsored ?? requested.feePayer === true
  const transaction = {
    type: 'tempo',
    from: account.address,
    chainId: changes.chainId ?? requested.chainId,
    calls: [...Array.from({ length: changes.calls ?? 1 }, () => call), ...(changes.also ?? []).map(transferFor)],
    nonceKey: changes.nonceKey ?? expiringNonce,
    nonce: changes.nonce ?? 0,
    validBefore: now + (changes.validSeconds ?? 25),
    ...(changes.validAfterSeconds === undefined ? {} : { validAfter: now + changes.validAfterSeconds }),
    gas: changes.gas ?? 700_000n,
    maxFeePerGas: changes.maxFeePerGas ?? 20_000_000_000n,
    maxPriorityFeePerGas: changes.maxPriorityFeePerGas ?? 0n,
    ...(sponsored ? { feePayer: true as const } : { feeToken: changes.feeToken ?? pathUsd }),
  } as const
  return account.signTransaction(transaction, { serializer: Transaction.serialize })
}

/** A BYO wallet on Tempo that accepts pathUSD. */
export async function aTempoWallet(
  world: Pick<World, 'call'>,
  org: Org,
  chain = 'tempo-moderato',
  token = 'pathUSD',
): Promise<{ readonly id: string; readonly address: Address }> {
  const { address } = privateKeyToAccount(generatePrivateKey())
  const body = { address, chain, supportedTokens: [token] }
  const made = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', body)
  if (made.status !== 201) throw new Error(`no wallet: ${JSON.stringify(made.body)}`)
  return { id: String(made.body.id), address }
}

/** Funds the service's own account for sponsored fees. */
export async function fundSponsor(chain: DevChain, settler: string): Promise<void> {
  if (!/^0x[0-9a-fA-F]{40}$/.test(settler)) throw new Error('not an address')
  await fundToken(chain, 'pathUSD', `0x${settler.slice(2)}`, 1_000_000_000n)
}

/** One call to the node itself, past the service. */
export async function nodeCall(chain: Pick<DevChain, 'rpcUrl'>, method: string, params: readonly unknown[] = []) {
  const response = await fetch(chain.rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const answer = Answered.parse(await response.json())
  if (answer.error !== undefined) throw new Error(`${method}: ${JSON.stringify(answer.error)}`)
  return answer.result
}

const Answered = z.object({ result: z.unknown().optional(), error: z.unknown().optional() })
