import type { VaultState } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, TextArea } from '../../ui/form.tsx'
import { count } from '../../ui/format.ts'
import { Sheet } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { vaultsKey } from './queries.ts'
import { vaultName } from './vault-state.tsx'

/** Seals a vault, after a confirmation that explains the consequences. */
export function SealDialog({ vault, onClose }: { vault: VaultState; onClose: () => void }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const [summary, setSummary] = useState('')
  const items = vault.documents.length + vault.files.length
  const seal = useMutation({
    mutationFn: () => purser.vaults.seal(vault.id, summary.trim() === '' ? {} : { summary: summary.trim() }),
    onSuccess: () => {
      toastDone('The vault is sealed')
      void queries.invalidateQueries({ queryKey: vaultsKey })
      onClose()
    },
  })
  return (
    <Sheet
      open
      onClose={onClose}
      title="Seal this vault"
      footer={
        <>
          <Button onClick={onClose}>Leave it open</Button>
          <Button tone="primary" busy={seal.isPending} onClick={() => seal.mutate()}>
            Seal {count(items, 'item')} permanently
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-5">
        <p className="font-medium break-words">{vaultName(vault)}</p>
        <ul className="flex list-disc flex-col gap-1.5 pl-5 text-ink-2">
          <li>
            {count(vault.documents.length, 'document')} and {count(vault.files.length, 'file')} become part of the
            proof.
          </li>
          <li>Afterwards no one can add, change or remove anything, and the live stream ends.</li>
          <li>The service signs the result. Anyone who has the proof can check it without trusting you.</li>
          <li>It cannot be opened again.</li>
        </ul>
        <Field label="Summary" hint="Optional. It becomes part of what is signed.">
          {(wiring) => (
            <TextArea
              {...wiring}
              maxLength={1_000}
              value={summary}
              onChange={({ target }) => setSummary(target.value)}
            />
          )}
        </Field>
        {seal.error !== null && <ErrorBlock error={seal.error} />}
      </div>
    </Sheet>
  )
}
