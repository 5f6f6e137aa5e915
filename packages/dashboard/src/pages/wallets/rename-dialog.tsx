import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { walletsKey } from './queries.ts'

interface RenameDialogProps {
  readonly what: 'wallet' | 'child address'
  readonly name: string | null
  /** Null removes the name. */
  readonly onSave: (name: string | null) => Promise<unknown>
  readonly onClose: () => void
}

export function RenameDialog({ what, name: present, onSave, onClose }: RenameDialogProps) {
  const queries = useQueryClient()
  const [name, setName] = useState(present ?? '')
  const rename = useMutation({
    mutationFn: () => onSave(name.trim() === '' ? null : name.trim()),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: walletsKey })
      onClose()
    },
  })
  return (
    <ActionDialog
      title={`Rename this ${what}`}
      act="Save the name"
      keep="Cancel"
      tone="primary"
      action={rename}
      onClose={onClose}
    >
      <Field label="Name" hint="Without a name, the id is shown.">
        {(wiring) => (
          <TextInput {...wiring} maxLength={200} value={name} onChange={({ target }) => setName(target.value)} />
        )}
      </Field>
    </ActionDialog>
  )
}
