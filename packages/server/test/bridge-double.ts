import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import type { Address } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { z } from 'zod'
import { aPartner, type PartnerDouble, type PartnerRequest, type PartnerResponse } from './partner-double.ts'

/** A transfer in the form of bridge.xyz's published answers. */
export interface BridgeTransfer {
  readonly id: string
  readonly amount: string
  readonly toAddress: Address
  readonly key: string
  state: string
  /** Members that its answers have in place of the usual ones. */
  changes?: Readonly<Record<string, unknown>>
}

/** A bank account of a customer at bridge.xyz; `key` is the idempotency key of the request that made it. */
interface BridgeAccount {
  readonly id: string
  readonly customerId: string
  readonly key: string
}

/** A double of bridge.xyz. The test sets the state of its transfers, and it can sign deliveries. */
export interface BridgeDouble extends PartnerDouble {
  readonly webhookPublicKey: string
  readonly transfers: readonly BridgeTransfer[]
  /** The accounts that are not deleted. */
  readonly accounts: readonly BridgeAccount[]
  /** Replaces an answer; undefined gives the usual one. */
  instead: (requested: PartnerRequest) => PartnerResponse | undefined
  /** Header and body of a delivery about a transfer. `changes` can make it old, or sign other bytes. */
  delivery(transfer: BridgeTransfer, changes?: { readonly ageMs?: number; readonly signed?: string }): Delivery
}

export interface Delivery {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const NewTransfer = z.object({
  on_behalf_of: z.string(),
  client_reference_id: z.string(),
  amount: z.string(),
  source: z.object({ payment_rail: z.string(), currency: z.string(), from_address: z.string() }),
  destination: z.object({ payment_rail: z.string(), currency: z.string(), external_account_id: z.string() }),
})
type NewTransfer = z.output<typeof NewTransfer>

/** Returns the existing account for a repeated idempotency key. Another customer's account is not found. */
function answerOfAccounts(
  accounts: BridgeAccount[],
  {
    method,
    headers,
    customerId,
    id,
  }: PartnerRequest & { readonly customerId: string; readonly id: string | undefined },
): PartnerResponse {
  if (method === 'DELETE') {
    const at = accounts.findIndex((one) => one.id === id && one.customerId === customerId)
    if (at < 0) return { status: 404, json: { code: 'not_found' } }
    accounts.splice(at, 1)
    return { json: { id } }
  }
  const key = headers['idempotency-key'] ?? ''
  const known = accounts.find((one) => one.key === key && one.customerId === customerId)
  const made = known ?? { id: `external_account_${key}_${customerId}`, customerId, key }
  if (known === undefined) accounts.push(made)
  return { status: 201, json: { id: made.id, active: true } }
}

export async function aBridge(): Promise<BridgeDouble> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const transfers: (BridgeTransfer & { readonly requested: NewTransfer })[] = []
  const accounts: BridgeAccount[] = []
  const now: Pick<BridgeDouble, 'instead'> = { instead: () => undefined }
  const shown = ({
    id,
    state,
    amount,
    toAddress,
    requested,
    changes,
  }: BridgeTransfer & { readonly requested: NewTransfer }) => ({
    ...{ id, state, developer_fee: '0.5', ...requested },
    source_deposit_instructions: { ...requested.source, amount: `${amount}.0`, to_address: toAddress },
    receipt: {
      ...{ initial_amount: amount, developer_fee: '0.5', exchange_fee: '0.0' },
      ...{ final_amount: String(Number(amount) - 0.5), exchange_rate: '1.0' },
    },
    ...changes,
  })
  const response = (requested: PartnerRequest): PartnerResponse => {
    const { method, path, headers } = requested
    const other = now.instead(requested)
    if (other !== undefined) return other
    const customer = /^\/customers\/([^/]+)\/external_accounts(?:\/(.+))?$/.exec(path)
    if (customer !== null)
      return answerOfAccounts(accounts, { ...requested, customerId: customer[1] ?? '', id: customer[2] })
    const key = headers['idempotency-key'] ?? ''
    if (method === 'POST') {
      const body = NewTransfer.parse(requested.body)
      const toAddress = privateKeyToAddress(generatePrivateKey())
      const made = {
        id: `transfer_${transfers.length}`,
        amount: body.amount,
        toAddress,
        key,
        state: 'awaiting_funds',
        requested: body,
      }
      const known = transfers.find((one) => one.key === key)
      if (known === undefined) transfers.push(made)
      return { status: 201, json: shown(known ?? made) }
    }
    const found = transfers.find(({ id }) => path === `/transfers/${id}`)
    return found === undefined ? { status: 404, json: { code: 'not_found' } } : { json: shown(found) }
  }
  const double = await aPartner(response)
  return Object.assign(now, double, {
    webhookPublicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    transfers,
    accounts,
    delivery(transfer: BridgeTransfer, changes: { readonly ageMs?: number; readonly signed?: string } = {}) {
      const event = { event_id: `wh_${transfer.id}`, event_category: 'transfer', event_object_id: transfer.id }
      const body = JSON.stringify({ ...event, event_object_status: transfer.state })
      const time = Date.now() - (changes.ageMs ?? 0)
      const digest = createHash('sha256')
        .update(`${time}.${changes.signed ?? body}`)
        .digest()
      const signature = sign('RSA-SHA256', digest, privateKey).toString('base64')
      return { headers: { 'x-webhook-signature': `t=${time},v0=${signature}` }, body }
    },
  })
}
