import { z } from 'zod'
import { defineErrors } from '../../platform/errors.ts'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { CreatedAt, Instant, PageQuery, text } from '../../platform/wire.ts'

export const approvalStatuses = ['waiting', 'granted', 'refused', 'canceled', 'expired'] as const
export type ApprovalStatus = (typeof approvalStatuses)[number]

/** Kinds of movements that wait for an approval: `refund`, `payment` and `transfer` are transfers. */
export const approvalKinds = ['transfer', 'refund', 'withdrawal', 'payment'] as const
export type ApprovalKind = (typeof approvalKinds)[number]

const Status = z.enum(approvalStatuses)

/** The approval as embedded in a transfer, withdrawal or payment. */
export const ApprovalState = z.strictObject({
  id: id('apr'),
  status: Status.describe(
    '`waiting` until a person decides (`granted`, `refused`), the requester cancels or it expires.',
  ),
  expiresAt: Instant.describe('When it expires without a decision.'),
})
export type ApprovalState = z.input<typeof ApprovalState>

export const approvalOf = ApprovalState.nullable().meta({
  description:
    "The approval that the wallet's policy requires; null if it requires none. While it is `waiting`, nothing moves and the funds stay reserved.",
})

const WalletIdOf = z.union([id('mwt'), id('cad')])
const Remaining = z.string().nullable()

export const Approval = z.strictObject({
  ...ApprovalState.shape,
  kind: z.enum(approvalKinds).describe('What waits: a transfer, a refund, a withdrawal or a payment of a 402.'),
  transferId: id('wtx')
    .nullable()
    .meta({ description: 'The transfer, also of a refund or a payment of a 402; null for a withdrawal.' }),
  withdrawalId: id('wdr').nullable().describe('The withdrawal; null for the other kinds.'),
  paymentId: id('pay').nullable().meta({ description: 'The payment that a refund pays back.' }),
  masterWalletId: id('mwt').meta({ description: 'The wallet whose policy requires the approval.' }),
  fromWalletId: WalletIdOf.describe('The wallet that pays.'),
  to: z.string().meta({ description: 'The recipient: an address, or the id of a bank account.' }),
  amount: z.string().describe('Amount in whole tokens.'),
  token: z.string().describe('Symbol of the token that leaves the wallet.'),
  chain: z.string().describe('The chain that the money leaves.'),
  toToken: z.string().describe('Symbol of the token that arrives.'),
  toChain: z.string().describe('The chain on which it arrives.'),
  approvalAbove: z.string().meta({ description: "The policy's limit that the amount exceeds, in whole tokens." }),
  deniedBy: z.string().nullable().meta({
    description:
      'While it waits: the rule of the present policy that would refuse the movement, gas left out; null if none would.',
  }),
  remaining: z
    .strictObject({
      perHour: Remaining.describe('What the hourly cap leaves.'),
      perDay: Remaining.describe('What the daily cap leaves.'),
      perMonth: Remaining.describe('What the monthly cap leaves.'),
    })
    .nullable()
    .meta({
      description:
        'While it waits: the remaining amount of each cap of the token after this movement, in whole tokens; null without a cap.',
    }),
  note: z.string().nullable().meta({ description: "The requester's reference; for a refund its reason." }),
  requestedBy: z
    .strictObject({
      apiKeyId: id('key').nullable().describe('The API key; null if a person made the request.'),
      apiKeyName: z.string().nullable().describe('Name of the API key.'),
      accountId: id('acc').meta({ description: 'The person, or the account that created the API key.' }),
      email: z.string().describe('E-mail address of the account.'),
    })
    .describe('Who made the request.'),
  createdAt: CreatedAt,
  decidedAt: Instant.nullable().describe('When it was decided; null until then.'),
  decidedBy: z.string().nullable().meta({ description: 'The account, or the API key that canceled it.' }),
  reason: z.string().nullable().meta({ description: 'Why it was refused, in the words of the person who did.' }),
})
export type Approval = z.input<typeof Approval>

export const ApprovalParams = z.strictObject({ id: id('apr') })

export const ApprovalListQuery = PageQuery.extend({
  status: Status.optional().describe('Only approvals in this state.'),
  walletId: WalletIdOf.optional().meta({ description: 'A wallet or child address; a wallet includes its children.' }),
})
export type ApprovalListQuery = z.output<typeof ApprovalListQuery>

export const ApprovalRefusal = z
  .strictObject({ reason: text(200, 1).optional().meta({ description: 'Why; the requester sees it.' }) })
  .meta({ example: { reason: 'Unknown recipient.' } })
export type ApprovalRefusal = z.output<typeof ApprovalRefusal>

named({ ApprovalState, Approval, ApprovalRefusal })

export const fail = defineErrors({
  'approval-not-found': {
    status: 404,
    title: 'Approval Not Found',
    detail: 'No such approval.',
    causes: ['This organisation has no approval with this id in this environment.'],
    fix: 'Take the id from `approval.id` of the transfer, refund, payment or withdrawal that waits, from `approval.requested`, or from `GET /approvals?status=waiting`.',
  },
  'approval-not-waiting': {
    status: 409,
    title: 'Approval Not Waiting',
    detail: 'The approval has been decided, or it has expired; see approvalStatus.',
    causes: [
      'Somebody else decided first: `approvalStatus` is `granted`, `refused` or `canceled`.',
      'Nobody decided within 24 hours: `expired`.',
    ],
    fix: 'Read the state with `GET /approvals/{id}`. To try again, the requester requests the movement again, which creates a new approval.',
  },
  'approval-needs-person': {
    status: 403,
    title: 'Approval Needs a Person',
    detail: 'An API key cannot approve or refuse. A signed-in owner or admin must decide.',
    causes: ['The request was made with an API key. A key that can move money must not approve its own movements.'],
    fix: 'An owner or admin signs in to the dashboard and decides under **Approvals**. Without a mail server the operator makes a link with `purser admin sign-in-link`; `npm start` prints one.',
  },
  'approval-own-request': {
    status: 403,
    title: 'Own Request',
    detail: 'You, or an API key that you created, made this request. Another owner or admin must approve it.',
    causes: [
      'You made the request yourself, or an API key that you created made it, and the organisation has another owner or admin.',
    ],
    fix: 'Another owner or admin approves it. You can withdraw it with `POST /approvals/{id}/cancel`.',
  },
  'approval-requester-not-allowed': {
    status: 409,
    title: 'Requester Not Allowed',
    detail:
      'The API key that made the request was revoked, or the person who made it is no longer a member or may only read. Refuse the request. A person or key that may move the money can make a new one.',
    causes: [
      'The API key that requested the movement was revoked or has expired.',
      'The person who requested it has left the organisation, or is now a viewer.',
    ],
    fix: 'Refuse it with `POST /approvals/{id}/refuse`, which frees what it reserved. If the movement is still wanted, request it again with a key or person that may move money.',
  },
  'approval-not-yours': {
    status: 403,
    title: 'Not Your Request',
    detail:
      'Only the requester can cancel it: the API key or person that made the request, or the person who created that key.',
    causes: ['Another API key or person made the request, and you did not create that key.'],
    fix: 'Cancel with the key that made the request. An owner or admin ends it for everybody with `POST /approvals/{id}/refuse`.',
  },
  'too-many-open-approvals': {
    status: 429,
    title: 'Too Many Open Approvals',
    detail:
      'The wallet has 20 requests that wait for an approval. Wait until some are decided, or cancel one. Nothing was moved.',
    causes: ['20 movements of this wallet and its child addresses already wait for a decision.'],
    fix: 'Have an owner or admin decide some under **Approvals**, or cancel some (`GET /approvals?status=waiting&walletId=…` lists them). If people cannot keep up, raise `approvalAbove` of the policy.',
  },
})

/** Errors of an operation that may need an approval, for its table. */
export const approvalErrors = { 'too-many-open-approvals': fail.table['too-many-open-approvals'] }
