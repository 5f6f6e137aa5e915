import type { VaultState } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { FileUp, Lock, Share2 } from 'lucide-react'
import { useRef, useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { vaultsKey } from './queries.ts'
import { SealDialog } from './seal-dialog.tsx'
import { ShareDialog } from './share-dialog.tsx'
import { isOpen, VaultBadge, vaultName, vaultWords } from './vault-state.tsx'

export function VaultHead({ vault }: { vault: VaultState }) {
  const mayWrite = useMay('member')
  const [dialog, setDialog] = useState<'seal' | 'share'>()
  const close = () => setDialog(undefined)
  return (
    <header className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
      <div className="flex min-w-0 flex-col gap-1">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="min-w-0 text-xl font-semibold tracking-tight break-words">{vaultName(vault)}</h1>
          <VaultBadge vault={vault} />
        </div>
        <p className="text-ink-2">{vaultWords(vault)}</p>
      </div>
      {mayWrite && (
        <div className="flex flex-wrap gap-2">
          {isOpen(vault) && (
            <>
              <Button tone="primary" onClick={() => setDialog('seal')}>
                <Lock aria-hidden /> Seal
              </Button>
              <AddFileButton vaultId={vault.id} />
            </>
          )}
          <Button onClick={() => setDialog('share')}>
            <Share2 aria-hidden /> Share
          </Button>
        </div>
      )}
      {dialog === 'seal' && <SealDialog vault={vault} onClose={close} />}
      {dialog === 'share' && <ShareDialog vaultId={vault.id} onClose={close} />}
    </header>
  )
}

function AddFileButton({ vaultId }: { vaultId: string }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const input = useRef<HTMLInputElement>(null)
  const add = useMutation({
    mutationFn: (file: File) => purser.vaults.files.add(vaultId, file, { name: file.name }),
    onSuccess: ({ name }) => {
      toastDone(`${name} is in the vault`)
      void queries.invalidateQueries({ queryKey: vaultsKey })
    },
    onError: toastFailed,
  })
  return (
    <>
      <Button busy={add.isPending} onClick={() => input.current?.click()}>
        <FileUp aria-hidden /> {add.isPending ? 'Adding …' : 'Add a file'}
      </Button>
      <input
        ref={input}
        type="file"
        hidden
        aria-label="File to add"
        onChange={({ target }) => {
          const file = target.files?.[0]
          if (file !== undefined) add.mutate(file)
          target.value = ''
        }}
      />
    </>
  )
}
