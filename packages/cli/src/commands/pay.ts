import { type Command, CommandError, type Outcome } from '../command.ts'
import { sendKeyed } from '../keyed.ts'
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
    'idempotency-key': { value: '<key>', about: 'repeat with the same key: nothing is paid twice' },
    ...serviceOptions,
  },
  notes: [
    'Prints the body of the response. With --format json: the whole outcome, with the payment.',
    'Example: purser pay https://api.example.com/forecast --wallet mwt_… --max 0.05',
  ],
  async run(args, io) {
    const [url = ''] = args.positionals
    const { wallet, max, method, body } = args.options
    if (wallet === undefined || max === undefined) throw new CommandError('Give --wallet and --max.')
    const { purser } = await serviceOf(args, io)
    const request = { fromWalletId: wallet, maxAmount: max, url, ...(method && { method }), ...(body && { body }) }
    const result = await sendKeyed(purser, { method: 'POST', path: '/wallet-infra/pay', body: request }, args, io)
    return { exitCode: exitCodeOf(result), lines: linesOf(result), json: result }
  },
}

interface Paid {
  readonly id: string | null
  readonly status?: string
  readonly outcome?: string
  readonly amount?: string
  readonly fromToken?: string
  readonly approval?: { readonly id: string; readonly status: string } | null
  readonly response?: { readonly status: number; readonly body?: string | null; readonly bodyEncoding?: string } | null
}

/**
 * 0 if the seller delivered. 1 if it refused the payment, or if the payment waits for an approval. 2 if it may have taken
 * the payment and delivered nothing.
 */
function exitCodeOf(result: unknown): Outcome['exitCode'] {
  const { response, outcome } = result as Paid
  if (outcome === 'unknown') return 2
  return response !== null && response !== undefined && response.status < 400 ? 0 : 1
}

function doubt(outcome: string | undefined): string {
  return outcome === 'unknown' ? '. The seller may take it: another purser pay is another payment.' : ''
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
