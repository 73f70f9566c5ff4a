import './nonce'
import './styles'
import './app.css'
import { MantineProvider } from '@mantine/core'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from './api/client'
import { nonce } from './nonce'
import { Begin } from './pages/begin'
import { SignIn } from './pages/signin'
import { router } from './router'
import { SessionGate } from './session'
import { theme, variables } from './theme'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5 * 60_000, // events say what has changed
      refetchOnWindowFocus: false,
      retry: (count, error) => !(error instanceof ApiError) && count < 2,
    },
  },
})

const place = document.getElementById('root')
if (place) {
  createRoot(place).render(
    <StrictMode>
      <MantineProvider theme={theme} cssVariablesResolver={variables} defaultColorScheme="auto" getStyleNonce={() => nonce}>
        <QueryClientProvider client={queries}>
          <SessionGate waiting={<Begin />} signIn={<SignIn />}>
            <RouterProvider router={router} />
          </SessionGate>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  )
}
