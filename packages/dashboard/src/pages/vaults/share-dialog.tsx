import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, Select } from '../../ui/form.tsx'
import { Sheet } from '../../ui/overlay.tsx'
import { Fact, Facts } from '../../ui/page.tsx'
import { QrCode } from '../../ui/qr-code.tsx'
import { CopyButton, Id, Time } from '../../ui/values.tsx'
import { vaultTokensQuery } from './queries.ts'
import { VaultTokens } from './vault-tokens.tsx'

const lifetimes = { '15m': '15 minutes', '1h': '1 hour', '24h': '24 hours' } as const

/** Shares a vault: with colleagues by its address, with a payer by a token that reads this vault and nothing else. */
export function ShareDialog({ vaultId, onClose }: { vaultId: string; onClose: () => void }) {
  const purser = usePurser()
  const [expiresIn, setExpiresIn] = useState<string>('1h')
  const address = `${location.origin}${location.pathname}`
  const queries = useQueryClient()
  const create = useMutation({
    mutationFn: () => purser.vaults.tokens.create(vaultId, { kind: 'token', expiresIn }),
    onSuccess: () => void queries.invalidateQueries({ queryKey: vaultTokensQuery(purser, vaultId).queryKey }),
  })
  return (
    <Sheet
      open
      onClose={onClose}
      title="Share this vault"
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button tone="primary" busy={create.isPending} onClick={() => create.mutate()}>
            Create a read token
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-6">
        <section>
          <h3 className="font-medium">With a colleague</h3>
          <p className="mt-1 mb-2 text-ink-2">Every member of this organisation can open this address.</p>
          <Code text={address} label="Copy the address" />
          <div className="mt-3 flex justify-center">
            <QrCode text={address} label="QR code of the address" />
          </div>
        </section>
        <section className="flex flex-col gap-3">
          <h3 className="font-medium">With the payer</h3>
          <p className="text-ink-2">
            A token reads the documents, the files and the stream of this vault, and nothing else. It cannot write. It
            ends when it expires or you revoke it.
          </p>
          <Field label="Valid for">
            {(wiring) => (
              <Select {...wiring} value={expiresIn} onChange={({ target }) => setExpiresIn(target.value)}>
                {Object.entries(lifetimes).map(([value, words]) => (
                  <option key={value} value={value}>
                    {words}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          {create.error !== null && <ErrorBlock error={create.error} />}
          {create.data !== undefined && <MadeToken {...create.data} />}
          <VaultTokens vaultId={vaultId} />
        </section>
      </div>
    </Sheet>
  )
}

function MadeToken({ token, vaultId, expiresAt }: { token: string; vaultId: string; expiresAt: string }) {
  const command = `curl -s ${location.origin}/vaults/${vaultId} -H "Authorization: Bearer ${token}"`
  return (
    <div role="status" className="flex flex-col gap-3 rounded-card border border-line bg-settled-soft p-4">
      <p className="font-medium">This token is shown once. Copy it now.</p>
      <Facts>
        <Fact name="Token">
          <Id value={token} whole />
        </Fact>
        <Fact name="Expires">
          <Time at={expiresAt} full />
        </Fact>
      </Facts>
      <Code text={command} label="Copy the command" />
    </div>
  )
}

function Code({ text, label }: { text: string; label: string }) {
  return (
    <div className="flex items-start gap-2 rounded-control border border-line bg-well px-2.5 py-2">
      <code className="min-w-0 flex-1 font-mono text-sm break-all">{text}</code>
      <CopyButton value={text} label={label} />
    </div>
  )
}
