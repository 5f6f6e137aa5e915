import { Plus, Webhook } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const webhooksNav: readonly NavEntry[] = [
  {
    label: 'Webhooks',
    icon: Webhook,
    path: '/webhooks',
    group: 'developers',
    opens: [{ prefix: 'wh_', path: (id) => `/webhooks/${id}` }],
    acts: [
      {
        label: 'Add a webhook endpoint',
        icon: Plus,
        needs: 'admin',
        act: { load: async () => (await import('./new-webhook.tsx')).NewWebhookSheet },
      },
    ],
  },
]
