# The simulator as a container: three brokers on 9092, 9093 and 9094, control on 8090.
#   docker build -t broker-sim .
#   docker run --rm -p 127.0.0.1:9092-9094:9092-9094 broker-sim
#   docker run --rm broker-sim run --help
# Clients in containers set BROKER_SIM_ADVERTISED_HOST to the name by which they reach this one.
# Without a registry take any image with Python 3.11 or newer and its venv module, or make one by
# python -m broker_sim_integration.reference.python_image:
#   docker build -t broker-sim --build-arg PYTHON_IMAGE=... .
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE} AS build

# Where pip finds packages, if not at PyPI.
ARG PIP_INDEX_URL
WORKDIR /src
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE NOTICE ./
COPY purgatory purgatory
COPY broker_sim broker_sim
RUN python3 -m venv /opt/broker-sim \
    && /opt/broker-sim/bin/pip install --no-cache-dir --no-compile -c constraints.txt '.[compression,fast,metrics]' \
    && /opt/broker-sim/bin/python -m pip uninstall --quiet --yes pip setuptools
# Python, the libraries that it loads, and the rest of what an image needs: less than half of the base, and no shell.
RUN library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') \
    && find /opt/broker-sim "$library" \( -name __pycache__ -o -name lib64 -o -path "$library/site-packages" \
        -o -path "$library/test" -o -path "$library/ensurepip" -o -path "$library/idlelib" -o -path "$library/lib2to3" \) -prune \
        -o ! -type d -print > /files \
    && { cat /files \
        && ldd /opt/broker-sim/bin/python3 $(grep '\.so$' /files) | grep -o '/[^ :]*\.so[^ :]*' \
        && find /lib/*/libgcc_s.so.1 /etc/ld.so.cache /etc/passwd /usr/share/doc/*/copyright; } | sort -u > /image-files \
    && mkdir /image && tar -ch -T /image-files | tar -x -C /image \
    && python3 -m compileall -q -s /image -p / /image/opt "/image$library"

FROM scratch
COPY --from=build /image /
ENV PATH=/opt/broker-sim/bin \
    PYTHONUNBUFFERED=1 \
    BROKER_SIM_ADVERTISED_HOST=127.0.0.1 \
    BROKER_SIM_CONTROL=http://127.0.0.1:8090

EXPOSE 8090 9092 9093 9094
USER nobody
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s CMD ["broker-sim", "ctl", "--json", "status"]
ENTRYPOINT ["broker-sim"]
CMD ["run", "--brokers", "3", "--host", "0.0.0.0", "--port", "9092", "--control-host", "0.0.0.0", "--control-port", "8090"]
