import { type Command, CommandError, type Outcome } from '../command.ts'
import { acceptedExitCode, sendKeyed } from '../keyed.ts'
import { serviceOf, serviceOptions } from '../service.ts'

/** `purser pay`: fetches a URL, and pays it from a managed wallet if it costs something. */
export const pay: Command = {
  name: 'pay',
  summary: 'Fetch a URL, and pay from a managed wallet if it responds 402.',
  positionals: ['<url>'],
  options: {
    wallet: { value: '<mwt_…|cad_…>', about: 'the wallet or child address that pays (required)' },
    max: { value: '<amount>', about: 'the most to pay, in whole tokens, such as 0.05 (required)' },
    method: { value: '<method>', about: 'of the request (default GET)' },
    body: { value: '<text>', about: 'of the request' },
    'approved-payment-id': { value: '<wtx_…>', about: 'the payment that a person approved, which this one finishes' },
    'idempotency-key': { value: '<key>', about: 'repeat with the same key: nothing is paid twice' },
    ...serviceOptions,
  },
  notes: [
    'Prints the body of the response. With --format json: the whole outcome, with the payment.',
    'Example: purser pay https://api.example.com/forecast --wallet mwt_… --max 0.05',
  ],
  async run(args, io) {
    const [url = ''] = args.positionals
    const { wallet, max, method, body: text } = args.options
    if (wallet === undefined || max === undefined) throw new CommandError('Give --wallet and --max.')
    const { purser } = await serviceOf(args, io)
    const approved = args.options['approved-payment-id']
    const body = {
      ...{ fromWalletId: wallet, maxAmount: max, url },
      ...(method && { method }),
      ...(text && { body: text }),
      ...(approved && { approvedPaymentId: approved }),
    }
    const paying = { method: 'POST', path: '/wallet-infra/pay', body } as const
    const { response, idempotencyKey } = await sendKeyed(purser, paying, args, io)
    const advice = adviceOf(response as Paid, idempotencyKey)
    return {
      exitCode: exitCodeOf(response),
      lines: [...linesOf(response), ...(advice === undefined ? [] : [advice])],
      json: advice === undefined ? response : { ...Object(response), idempotencyKey, advice },
    }
  },
}

interface Paid {
  readonly id: string | null
  readonly status?: string
  readonly outcome?: string | null
  readonly amount?: string
  readonly fromToken?: string
  readonly approval?: { readonly id: string; readonly status: string } | null
  readonly response?: { readonly status: number; readonly body?: string | null; readonly bodyEncoding?: string } | null
}

/**
 * 0 if the seller delivered. 1 if it refused the payment. 2 if it may have taken the payment and delivered nothing. 3 if
 * the payment waits for an approval, or is approved and not paid yet.
 */
function exitCodeOf(result: unknown): Outcome['exitCode'] {
  const { response, outcome } = result as Paid
  if (acceptedExitCode(result) === 3 || isToFinish(result as Paid)) return 3
  if (outcome === 'unknown') return 2
  return response !== null && response !== undefined && response.status < 400 ? 0 : 1
}

/** Whether a person has approved the payment, which its own command has not paid yet: the repeat of a first one shows that. */
function isToFinish({ approval, status, outcome, response }: Paid): boolean {
  return approval?.status === 'granted' && status === 'pending' && outcome == null && response == null
}

/** The next command, with the key for it, if nothing is decided yet. The key after an approval is the same each time. */
function adviceOf(result: Paid, key: string): string | undefined {
  if (acceptedExitCode(result) === 3)
    return (
      'After the approval, run the same command within an hour with ' +
      `--approved-payment-id ${result.id} --idempotency-key approved-${result.id}. ` +
      `Until then, run it only with --idempotency-key ${key}: with another key it is another payment.`
    )
  if (isToFinish(result))
    return (
      'The payment is approved. Run the same command within an hour of the approval with ' +
      `--approved-payment-id ${result.id} --idempotency-key approved-${result.id}.`
    )
  if (result.outcome !== 'unknown') return undefined
  return `To look again, run the same command within 24 hours with --idempotency-key ${key}. With another key it pays again.`
}

function doubt(outcome: string | null | undefined): string {
  return outcome === 'unknown' ? '. The seller may take it.' : ''
}

function linesOf(result: unknown): readonly string[] {
  const { id, status, outcome, amount, fromToken, approval, response } = result as Paid
  const payment = id === null ? 'Nothing was paid.' : `${id}: ${amount} ${fromToken}, ${status}${doubt(outcome)}`
  if (approval?.status === 'waiting') return [payment, `Waiting for the approval ${approval.id}.`]
  if (response === null || response === undefined) return [payment]
  const isText = response.bodyEncoding !== 'base64'
  const body = isText ? (response.body ?? '') : 'The body is not text: use --format json.'
  return [payment, `HTTP ${response.status}`, '', ...body.split('\n')]
}
