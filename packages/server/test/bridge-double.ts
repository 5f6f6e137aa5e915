import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import type { Address } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { z } from 'zod'
import { type Asked, aPartner, type PartnerDouble, type Told } from './partner-double.ts'

/** A transfer as bridge.xyz keeps it, in the shape of its published answers. */
export interface BridgeTransfer {
  readonly id: string
  readonly amount: string
  readonly toAddress: Address
  readonly key: string
  state: string
}

/** A bank account that a customer has at bridge.xyz; `key` names the request that made it. */
export interface BridgeAccount {
  readonly id: string
  readonly customerId: string
  readonly key: string
}

/** bridge.xyz, whose transfers stand where the test puts them, and whose deliveries it can sign. */
export interface BridgeDouble extends PartnerDouble {
  readonly webhookPublicKey: string
  readonly transfers: readonly BridgeTransfer[]
  /** Those that are not deleted. */
  readonly accounts: readonly BridgeAccount[]
  /** In place of the answer that it would give; undefined for that one. */
  instead: (asked: Asked) => Told | undefined
  /** Header and body of a delivery about a transfer; of another age or signed over other bytes where a test lies. */
  delivery(transfer: BridgeTransfer, changes?: { readonly ageMs?: number; readonly signed?: string }): Delivery
}

export interface Delivery {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const NewTransfer = z.object({
  amount: z.string(),
  source: z.object({ payment_rail: z.string(), currency: z.string(), from_address: z.string() }),
  destination: z.object({ payment_rail: z.string(), currency: z.string(), external_account_id: z.string() }),
})
type NewTransfer = z.output<typeof NewTransfer>

/** Asked again under the same name, it answers the account that is there. Another customer's account is not found. */
function answerOfAccounts(
  accounts: BridgeAccount[],
  { method, headers, customerId, id }: Asked & { readonly customerId: string; readonly id: string | undefined },
): Told {
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
  const transfers: (BridgeTransfer & { readonly asked: NewTransfer })[] = []
  const accounts: BridgeAccount[] = []
  const now: Pick<BridgeDouble, 'instead'> = { instead: () => undefined }
  const shown = ({ id, state, amount, toAddress, asked }: BridgeTransfer & { readonly asked: NewTransfer }) => ({
    ...{ id, state, on_behalf_of: 'cust_alice', developer_fee: '0.5', ...asked },
    source_deposit_instructions: { ...asked.source, amount: `${amount}.0`, to_address: toAddress },
    receipt: {
      ...{ initial_amount: amount, developer_fee: '0.5', exchange_fee: '0.0' },
      ...{ final_amount: String(Number(amount) - 0.5), exchange_rate: '1.0' },
    },
  })
  const answer = (asked: Asked): Told => {
    const { method, path, headers } = asked
    const other = now.instead(asked)
    if (other !== undefined) return other
    const customer = /^\/customers\/([^/]+)\/external_accounts(?:\/(.+))?$/.exec(path)
    if (customer !== null)
      return answerOfAccounts(accounts, { ...asked, customerId: customer[1] ?? '', id: customer[2] })
    const key = headers['idempotency-key'] ?? ''
    if (method === 'POST') {
      const body = NewTransfer.parse(asked.body)
      const toAddress = privateKeyToAddress(generatePrivateKey())
      const made = {
        id: `transfer_${transfers.length}`,
        amount: body.amount,
        toAddress,
        key,
        state: 'awaiting_funds',
        asked: body,
      }
      const known = transfers.find((one) => one.key === key)
      if (known === undefined) transfers.push(made)
      return { status: 201, json: shown(known ?? made) }
    }
    const found = transfers.find(({ id }) => path === `/transfers/${id}`)
    return found === undefined ? { status: 404, json: { code: 'not_found' } } : { json: shown(found) }
  }
  const double = await aPartner(answer)
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
