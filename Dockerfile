# Building the wheel also builds the web UI. pip installs the build tools.
FROM python:3.13-slim
RUN apt-get update && apt-get install --yes --no-install-recommends bubblewrap && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home dragoman && mkdir /work && chown dragoman /work
COPY . /src
RUN pip install --no-cache-dir '/src[programs,postgres,objects]' && rm -rf /src
USER dragoman
WORKDIR /work
CMD ["dragoman", "serve", "--host", "0.0.0.0"]
