import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { readPaymentsSearch } from './search.ts'

const paymentsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/payments',
  validateSearch: readPaymentsSearch,
  component: lazyRouteComponent(() => import('./payments-page.tsx'), 'PaymentsPage'),
})

const paymentRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/payments/$paymentId',
  component: lazyRouteComponent(() => import('./payment-page.tsx'), 'PaymentPage'),
})

export const paymentsRoutes = [paymentsRoute, paymentRoute] as const
