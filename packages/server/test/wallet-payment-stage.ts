import { fundToken } from '@purser/devnet'
import { decodeJsonBase64, encodeJsonBase64, networkByName, tokenBySymbol } from '@purser/protocol'
import { createWalletClient, http, parseSignature } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { expect } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/platform/db/db.ts'
import { newId } from '../src/platform/ids.ts'
import { aBrowser } from './people.ts'
import {
  aChild,
  aMaster,
  driving,
  type Managed,
  masters,
  patient,
  stranger,
  type TransferStage,
  transferOf,
} from './transfer-stage.ts'
import { type Answer, request } from './world.ts'

const path = '/wallet-infra/pay'
export const network = must(networkByName('base-sepolia'))
export const usdc = must(tokenBySymbol(network, 'USDC'))

export function must<T>(value: T | undefined | null): T {
  if (value === undefined || value === null) throw new Error('the fixture is broken')
  return value
}

interface Wallets {
  readonly master: Managed
  readonly child: Managed
}

/** A child with 10 USDC and no coin. */
export async function aPayer(stage: TransferStage, policy?: unknown): Promise<Wallets> {
  const master = await aMaster(stage, { usdc: 0n })
  const child = await aChild(stage, master)
  if (policy !== undefined)
    expect((await stage.world.call(stage.key, 'PUT', `${masters}/${master.id}/policy`, policy)).status).toBe(200)
  await fundToken(stage.dev, 'USDC', child.address, 10_000_000n)
  await expect
    .poll(async () => {
      await stage.chain.mine({ blocks: 1 })
      const { list } = await stage.world.call(
        stage.key,
        'GET',
        `${masters}/${master.id}/child-addresses/${child.id}/transactions`,
      )
      return list.length
    }, driving)
    .toBe(1)
  return { master, child }
}

/** An offer of 0.01 USDC. */
export function offer(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const price = { scheme: 'exact', network: network.caip2, amount: '10000', asset: usdc.address, payTo: stranger() }
  return { ...price, maxTimeoutSeconds: 60, extra: { ...usdc.eip712 }, ...changes }
}

export function challengeOf(...accepts: Record<string, unknown>[]) {
  const required = { x402Version: 2, resource: { url: 'https://seller.test/' }, accepts }
  return { status: 402, headers: { 'Payment-Required': encodeJsonBase64(required) } }
}

interface Pay {
  readonly from: Managed
  readonly challenge: unknown
  readonly changes?: Record<string, unknown>
  readonly key?: string
  readonly base?: string
}

export function pay(
  stage: TransferStage,
  { from, challenge, changes = {}, key, base = stage.world.base }: Pay,
): Promise<Answer> {
  const headers = key === undefined ? {} : { 'idempotency-key': key }
  const body = { fromWalletId: from.id, challenge, maxAmount: '1', ...changes }
  return request(base, { key: stage.key, method: 'POST', path, body, headers })
}

const Credential = z.object({ header: z.string(), value: z.string(), validBefore: z.string() })
export const credentialOf = ({ body }: Answer) => Credential.parse(body.credential)

interface Signed {
  readonly signature: `0x${string}`
  readonly authorization: Record<'from' | 'to' | 'nonce' | 'value' | 'validAfter' | 'validBefore', string>
}

export function payloadOf(answer: Answer): Signed {
  return z.object({ payload: z.custom<Signed>() }).parse(decodeJsonBase64(credentialOf(answer).value)).payload
}

/** Sends a credential's authorization to the token, as any payee may. */
export async function redeem(stage: TransferStage, answer: Answer): Promise<void> {
  const { signature, authorization: a } = payloadOf(answer)
  const { r, s, v } = parseSignature(signature)
  const { rpcUrl } = stage.dev
  const account = privateKeyToAccount(generatePrivateKey())
  await stage.chain.setBalance({ address: account.address, value: 10n ** 18n })
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(rpcUrl) })
  const types =
    'address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce,uint8 v,bytes32 r,bytes32 s'
  const inputs = types.split(',').map((input) => {
    const [type = '', name = ''] = input.split(' ')
    return { type, name }
  })
  const abi = [
    { type: 'function', name: 'transferWithAuthorization', stateMutability: 'nonpayable', inputs, outputs: [] },
  ] as const
  const args = [a.from, a.to, BigInt(a.value), BigInt(a.validAfter), BigInt(a.validBefore), a.nonce, Number(v), r, s]
  await wallet.writeContract({ address: usdc.address, abi, functionName: 'transferWithAuthorization', args })
}

/** Mines until the payment has ended. */
export async function endOf(stage: TransferStage, id: unknown): Promise<unknown[]> {
  const read = async () => {
    await stage.chain.mine({ blocks: 1 })
    return (await transferOf(stage, String(id))).status
  }
  await expect.poll(read, driving).not.toBe('pending')
  const { status, reason } = await transferOf(stage, String(id))
  return [status, reason]
}

export async function reservedOf(stage: TransferStage, { address }: Managed): Promise<bigint> {
  const statement = sql`select coalesce(sum(raw_amount), 0)::text as raw from reservations where owner = ${address} and ended_at is null`
  return BigInt((await stage.world.database.db.one(z.object({ raw: z.string() }), statement)).raw)
}

/** A policy under which more than 0.5 USDC needs an approval. */
export const approving = {
  operations: { pay: { recipients: 'any' } },
  tokens: { USDC: { perDay: '5', approvalAbove: '0.5' } },
}

/** A second admin, who may approve what the owner's key requests. */
export async function anAdmin({ world, org }: TransferStage) {
  const email = 'second@example.com'
  const { db } = world.database
  await db.run(sql`
    insert into accounts (id, email, accepted_at, created_at) values (${newId('acc', world.server.deps)}, ${email}, now(), now())
    on conflict do nothing`)
  await db.run(sql`
    insert into members (organisation_id, account_id, role, created_at, accepted_at)
    select ${org.id}, id, 'admin', now(), now() from accounts where email = ${email} on conflict do nothing`)
  return aBrowser(world, { email, organisationId: org.id })
}

/** Approves a payment, and waits until it takes a fresh 402. */
export async function approve(stage: TransferStage, approvalId: string, paymentId: string): Promise<void> {
  expect((await (await anAdmin(stage)).call('POST', `/approvals/${approvalId}/approve`)).status).toBe(200)
  const open = async () => {
    const rows = sql`select transfer_id from wallet_payments where transfer_id = ${paymentId} and pay_until is not null`
    return (await stage.world.database.db.many(z.object({}), rows)).length
  }
  await expect.poll(open, patient).toBe(1)
}
