import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { Button, type ButtonTone } from '../../ui/button.tsx'
import { Field, Select, TextInput } from '../../ui/form.tsx'
import { useIdempotencyKey } from '../../ui/idempotency.ts'
import { vaultsKey } from './queries.ts'

/** Opens the dialog that creates a vault. Viewers have no such button. */
export function NewVaultButton({ tone = 'primary' }: { tone?: ButtonTone }) {
  const mayCreate = useMay('member')
  const [isOpen, setOpen] = useState(false)
  if (!mayCreate) return null
  return (
    <>
      <Button tone={tone} onClick={() => setOpen(true)}>
        <Plus aria-hidden /> Create a vault
      </Button>
      {isOpen && <NewVaultDialog onClose={() => setOpen(false)} />}
    </>
  )
}

/** Creates a vault, and opens its page. */
export function NewVaultDialog({ onClose }: { onClose: () => void }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const [description, setDescription] = useState('')
  const [ttl, setTtl] = useState('24h')
  const { key, onError } = useIdempotencyKey()
  const create = useMutation({
    mutationFn: () =>
      purser.vaults.create(
        { ttl, ...(description.trim() !== '' && { description: description.trim() }) },
        { idempotencyKey: key },
      ),
    onError,
    onSuccess: ({ id }) => {
      void queries.invalidateQueries({ queryKey: vaultsKey })
      onClose()
      void navigate({ to: '/vaults/$vaultId', params: { vaultId: id } })
    },
  })
  return (
    <ActionDialog
      title="Create a vault"
      act="Create the vault"
      keep="Cancel"
      tone="primary"
      action={create}
      onClose={onClose}
    >
      <Field label="Description" hint="Everyone who can read the vault sees it.">
        {(wiring) => (
          <TextInput
            {...wiring}
            maxLength={200}
            placeholder="Research on the market for batteries"
            value={description}
            onChange={({ target }) => setDescription(target.value)}
          />
        )}
      </Field>
      <Field
        label="Keep it for"
        hint="When it expires, the vault and everything in it is deleted, unless it is persisted."
      >
        {(wiring) => (
          <Select {...wiring} value={ttl} onChange={({ target }) => setTtl(target.value)}>
            <option value="1h">1 hour</option>
            <option value="24h">24 hours</option>
            <option value="7d">7 days</option>
          </Select>
        )}
      </Field>
    </ActionDialog>
  )
}
