import type { Payment } from '@purser/sdk'
import { fetchKeys, type ReceiptFault, type ReceiptVerdict, verifyReceipt } from '@purser/sdk/seal'
import { useMutation } from '@tanstack/react-query'
import { Copy, ShieldCheck } from 'lucide-react'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Fact, Facts } from '../../ui/page.tsx'
import { StateIcon } from '../../ui/state.tsx'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { Id, OnChain, Time } from '../../ui/values.tsx'

/** The receipt that the payer gets with the response: a header of the protocol, and in x402 a statement that the service signed. */
export function Receipt({ payment: { protocol, chain, receipt } }: { payment: Payment }) {
  if (protocol === 'mpp')
    return (
      <p>
        The response has the header <Header name="Payment-Receipt" />. Its reference is the transaction.
      </p>
    )
  return (
    <div className="flex flex-col items-start gap-2">
      <p>
        The response has the header <Header name="PAYMENT-RESPONSE" /> with the transaction, the network and the payer
        {receipt === null ? '.' : ', and a statement that this service signed.'}
      </p>
      {receipt !== null && <SignedReceipt receipt={receipt} chain={chain} />}
    </div>
  )
}

function Header({ name }: { name: string }) {
  return <code className="font-mono text-sm whitespace-nowrap">{name}</code>
}

function SignedReceipt({ receipt, chain }: { receipt: string; chain: string }) {
  const verify = useMutation({
    mutationFn: async () => verifyReceipt(receipt, { keys: await fetchKeys(location.origin) }),
  })
  return (
    <>
      <span className="flex flex-wrap gap-2">
        <Button small busy={verify.isPending} onClick={() => verify.mutate()}>
          <ShieldCheck aria-hidden /> {verify.isPending ? 'Verifying …' : 'Verify here'}
        </Button>
        <Button
          small
          onClick={() => navigator.clipboard.writeText(receipt).then(() => toastDone('Receipt copied'), toastFailed)}
        >
          <Copy aria-hidden /> Copy
        </Button>
      </span>
      <div role="status" className="w-full empty:hidden">
        {verify.data !== undefined && <Verdict verdict={verify.data} chain={chain} />}
      </div>
      {verify.error !== null && <ErrorBlock error={verify.error} />}
    </>
  )
}

const faults: Readonly<Record<ReceiptFault, string>> = {
  'receipt-malformed': 'The statement is not a receipt.',
  'key-unknown': 'The statement names a key that this service does not publish.',
  'signature-invalid': 'The signature was not made with the key that the statement names.',
  'keys-unusable': 'The service publishes no key to verify it with.',
}

function Verdict({ verdict, chain }: { verdict: ReceiptVerdict; chain: string }) {
  if (!verdict.ok)
    return (
      <p className="flex gap-2 text-failed">
        <StateIcon state="failed" className="mt-0.5" /> Not verified: {faults[verdict.fault]}
      </p>
    )
  const { payer, resourceUrl, transaction, issuedAt } = verdict.statement
  return (
    <div className="flex flex-col gap-2">
      <p className="flex gap-2 font-medium text-settled">
        <StateIcon state="settled" className="mt-0.5" /> Verified: the service signed this.
      </p>
      <Facts>
        <Fact name="Payer">
          <OnChain value={payer} network={chain} kind="address" />
        </Fact>
        <Fact name="Paid for">{resourceUrl}</Fact>
        {transaction !== '' && (
          <Fact name="Transaction">
            <OnChain value={transaction} network={chain} kind="tx" />
          </Fact>
        )}
        <Fact name="Issued">
          <Time at={new Date(issuedAt * 1_000).toISOString()} full />
        </Fact>
        <Fact name="Key">
          <Id value={verdict.kid} whole />
        </Fact>
      </Facts>
    </div>
  )
}
