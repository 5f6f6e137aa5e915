import type { VaultState } from '@purser/sdk'
import { useMutation } from '@tanstack/react-query'
import { Download, LoaderCircle, ShieldCheck } from 'lucide-react'
import { useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { count } from '../../ui/format.ts'
import { Card } from '../../ui/page.tsx'
import { StateIcon } from '../../ui/state.tsx'
import { toastFailed } from '../../ui/toast.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { type Check, verifyVault } from './verify-vault.ts'

/** The proof of a sealed vault: downloaded, or checked here in the browser, item by item. */
export function VaultProof({ vault }: { vault: VaultState }) {
  const purser = usePurser()
  const [checks, setChecks] = useState<readonly Check[]>([])
  const verify = useMutation({
    mutationFn: () => {
      setChecks([])
      return verifyVault(purser, vault.id, setChecks)
    },
  })
  const items = vault.documents.length + vault.files.length
  return (
    <Card
      title="Proof"
      aside={
        <span className="flex flex-wrap justify-end gap-2">
          <DownloadButton vaultId={vault.id} />
          <Button small tone="primary" busy={verify.isPending} onClick={() => verify.mutate()}>
            <ShieldCheck aria-hidden /> {verify.isPending ? 'Verifying …' : 'Verify here'}
          </Button>
        </span>
      }
    >
      <p>
        Sealed <Time at={vault.sealedAt} full /> with {count(items, 'item')}.
      </p>
      {checks.length === 0 && !verify.isPending && (
        <p className="mt-1 text-ink-2">
          Your browser reads every item again, recomputes its hash, and checks it against the signature of the service.
        </p>
      )}
      <ul aria-live="polite" className="mt-3 flex flex-col gap-2 empty:hidden">
        {checks.map((check) => (
          <CheckRow key={check.key} check={check} />
        ))}
      </ul>
      {verify.data !== undefined && <Result ok={verify.data.ok} kid={verify.data.kid} items={items} />}
      {verify.error !== null && (
        <div className="mt-3">
          <ErrorBlock error={verify.error} />
        </div>
      )}
    </Card>
  )
}

function CheckRow({ check: { state, title, detail } }: { check: Check }) {
  return (
    <li className="flex items-start gap-2">
      {state === 'running' ? (
        <LoaderCircle className="mt-0.5 size-4 shrink-0 animate-spin text-pending" aria-label="Checking" />
      ) : (
        <StateIcon state={state === 'passed' ? 'settled' : 'failed'} className="mt-0.5" />
      )}
      <span className="min-w-0">
        <span className="break-words">
          {title} <span className="sr-only">{state}</span>
        </span>
        {detail !== undefined && <span className="block text-sm break-words text-ink-2">{detail}</span>}
      </span>
    </li>
  )
}

function Result({ ok, kid, items }: { ok: boolean; kid: string | undefined; items: number }) {
  return (
    <div className={`mt-4 rounded-control p-3 ${ok ? 'bg-settled-soft' : 'bg-failed-soft'}`}>
      <p className={`font-medium ${ok ? 'text-settled' : 'text-failed'}`}>
        {ok
          ? `Verified: ${items === 1 ? 'the one item is' : `all ${items} items are`} exactly what was sealed.`
          : 'Not verified: the content differs from the sealed content.'}
      </p>
      {ok && kid !== undefined && (
        <p className="mt-0.5 flex flex-wrap items-center gap-x-1.5 text-ink-2">
          Signed with the key <Id value={kid} whole />
        </p>
      )}
    </div>
  )
}

function DownloadButton({ vaultId }: { vaultId: string }) {
  const purser = usePurser()
  const download = useMutation({
    mutationFn: async () => {
      const proof = await purser.vaults.proof(vaultId)
      const link = document.createElement('a')
      link.href = URL.createObjectURL(new Blob([JSON.stringify(proof, null, 2)], { type: 'application/json' }))
      link.download = `proof-${vaultId}.json`
      link.click()
      URL.revokeObjectURL(link.href)
    },
    onError: toastFailed,
  })
  return (
    <Button small busy={download.isPending} onClick={() => download.mutate()}>
      <Download aria-hidden /> Download
    </Button>
  )
}
