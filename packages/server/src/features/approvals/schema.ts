import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { Instant, PageQuery, text } from '../../platform/wire.ts'

export const approvalStatuses = ['waiting', 'granted', 'refused', 'canceled', 'expired'] as const
export type ApprovalStatus = (typeof approvalStatuses)[number]

/** What waits: `refund`, `payment` and `transfer` are transfers. */
export const approvalKinds = ['transfer', 'refund', 'withdrawal', 'payment'] as const
export type ApprovalKind = (typeof approvalKinds)[number]

const Status = z.enum(approvalStatuses)

/** An approval as a part of what it is about. */
export const ApprovalState = z.strictObject({ id: id('apr'), status: Status, expiresAt: Instant })
export type ApprovalState = z.input<typeof ApprovalState>

export const approvalOf = ApprovalState.nullable().meta({
  description:
    "The approval that the wallet's policy requires; null if it requires none. While it is `waiting`, nothing moves and the funds stay reserved.",
})

const WalletIdOf = z.union([id('mwt'), id('cad')])
const Remaining = z.string().nullable()

export const Approval = z.strictObject({
  ...ApprovalState.shape,
  kind: z.enum(approvalKinds),
  transferId: id('wtx')
    .nullable()
    .meta({ description: 'The transfer, also of a refund or a payment of a 402; null for a withdrawal.' }),
  withdrawalId: id('wdr').nullable(),
  paymentId: id('pay').nullable().meta({ description: 'The payment that a refund pays back.' }),
  masterWalletId: id('mwt').meta({ description: 'The wallet whose policy requires the approval.' }),
  fromWalletId: WalletIdOf,
  to: z.string().meta({ description: 'The recipient: an address, or the id of a bank account.' }),
  amount: z.string(),
  token: z.string(),
  chain: z.string(),
  toToken: z.string(),
  toChain: z.string(),
  approvalAbove: z.string().meta({ description: "The policy's limit that the amount exceeds, in whole tokens." }),
  deniedBy: z.string().nullable().meta({
    description:
      'While it waits: the rule of the present policy that would refuse the movement, gas left out; null if none would.',
  }),
  remaining: z.strictObject({ perHour: Remaining, perDay: Remaining, perMonth: Remaining }).nullable().meta({
    description:
      'While it waits: what each cap of the token leaves after this movement, in whole tokens; null where there is no cap.',
  }),
  note: z.string().nullable().meta({ description: "The requester's reference; for a refund its reason." }),
  requestedBy: z.strictObject({
    apiKeyId: id('key').nullable(),
    apiKeyName: z.string().nullable(),
    accountId: id('acc').meta({ description: 'The person, or the account that created the API key.' }),
    email: z.string(),
  }),
  createdAt: Instant,
  decidedAt: Instant.nullable(),
  decidedBy: z.string().nullable().meta({ description: 'The account, or the API key that canceled it.' }),
  reason: z.string().nullable().meta({ description: 'Why it was refused, in the words of the person who did.' }),
})
export type Approval = z.input<typeof Approval>

export const ApprovalParams = z.strictObject({ id: id('apr') })

export const ApprovalListQuery = PageQuery.extend({
  status: Status.optional(),
  walletId: WalletIdOf.optional().meta({ description: 'A wallet or child address; a wallet includes its children.' }),
})
export type ApprovalListQuery = z.output<typeof ApprovalListQuery>

export const Refusal = z
  .strictObject({ reason: text(200, 1).optional().meta({ description: 'Why; the requester sees it.' }) })
  .meta({ example: { reason: 'Unknown recipient.' } })
export type Refusal = z.output<typeof Refusal>

named({ ApprovalState, Approval, ApprovalRefusal: Refusal })
